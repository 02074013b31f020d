use std::sync::PoisonError;

use super::*;

#[test]
fn both_layouts_both_ways() {
    let size = shape(2, 3, 4, 150);
    let planar = Rng::new(4).floats(3600);
    let wanted = interleaved(&planar, size);
    let mut sources = [
        MemorySource::new(&planar[..], size, Layout::Nchw).unwrap(),
        MemorySource::new(wanted.clone(), size, Layout::Nhwc).unwrap(),
    ];
    for source in &mut sources {
        assert_eq!(read_in_order(source, 3).unwrap(), wanted);
        assert_eq!(read_anywhere(source, 2, 2), wanted);
    }
    for (layout, all) in [(Layout::Nchw, &planar), (Layout::Nhwc, &wanted)] {
        let mut sink = MemorySink::new(size, layout);
        let shared = sink.data();
        write_anywhere(&mut sink, size, &wanted, 2).unwrap();
        sink.finish().unwrap();
        assert_eq!(*shared.lock().unwrap_or_else(PoisonError::into_inner), *all);
        assert_eq!(sink.take(), *all);
        assert!(sink.write(0, 0, 0..150, &[&wanted[..450]]).is_err());
    }
    assert!(MemorySource::new(vec![0.0; 3599], size, Layout::Nchw).is_err());
    assert!(MemorySource::new(vec![], shape(1, 1 << 32, 1 << 32, 2), Layout::Nchw).is_err());
}

#[test]
fn a_function_gives_rows() {
    let size = shape(2, 2, 3, 4);
    let mut source = FnSource::new(size, |item, y, cols, rows| {
        for (y, row) in (y..).zip(rows.iter_mut()) {
            for (x, pixel) in (cols.start..).zip(row.chunks_exact_mut(2)) {
                let at = (item * 100 + y * 10 + x) as f32;
                pixel.copy_from_slice(&[at, -at]);
            }
        }
        Ok(())
    });
    let all = read_in_order(&mut source, 2).unwrap();
    assert_eq!(all[..4], [0.0, -0.0, 1.0, -1.0]);
    assert_eq!(all[46..], [123.0, -123.0]);
    assert_eq!(read_anywhere(&mut source, 1, 3), all);
}
