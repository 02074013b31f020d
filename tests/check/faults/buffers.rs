//! Places, sizes, owners and sums.

use stripmill::plan::{ALIGN, Buffer, Class, Home, Instr, MemId};

use super::Faults;

impl Faults<'_> {
    pub(super) fn buffers(&mut self) {
        self.places();
        self.sizes();
        self.owners();
        self.sums();
    }

    fn places(&mut self) {
        let (buffers, arena) = (&self.base.buffers, self.base.arena_bytes);
        for (m, b) in buffers.iter().enumerate() {
            self.add(format!("buffer {m} is misaligned"), |p| {
                p.buffers[m].offset += 4
            });
            // where the bytes beside a buffer are free as long as it lives, it may as well be there
            for offset in [b.offset + ALIGN, b.offset.wrapping_sub(ALIGN)] {
                let moved = Buffer {
                    offset,
                    ..b.clone()
                };
                let outside = offset.checked_add(b.bytes).is_none_or(|end| end > arena);
                let taken = buffers
                    .iter()
                    .enumerate()
                    .any(|(k, other)| k != m && clash(&moved, other));
                if outside || taken {
                    self.add(format!("buffer {m} is moved to {offset}"), |p| {
                        p.buffers[m].offset = offset
                    });
                }
            }
            for (k, other) in buffers.iter().enumerate() {
                let moved = Buffer {
                    offset: other.offset,
                    ..b.clone()
                };
                if k != m && moved.offset != b.offset && clash(&moved, other) {
                    self.add(format!("buffer {m} is moved onto {k}"), |p| {
                        p.buffers[m].offset = moved.offset
                    });
                }
            }
            let end = arena.next_multiple_of(ALIGN);
            if b.bytes > 0 {
                self.add(format!("buffer {m} is moved out of the arena"), |p| {
                    p.buffers[m].offset = end
                });
            }
            self.add(format!("buffer {m} is moved out of all bounds"), |p| {
                p.buffers[m].offset = u64::MAX / ALIGN * ALIGN;
                p.buffers[m].bytes += 2 * ALIGN;
            });
        }
    }

    fn sizes(&mut self) {
        for (m, b) in self.base.buffers.iter().enumerate() {
            if b.bytes > 0 {
                self.add(format!("buffer {m} is a byte smaller"), |p| {
                    p.buffers[m].bytes -= 1
                });
            }
            // a pool may have bytes to spare
            if b.class != Class::Rows {
                self.add(format!("buffer {m} is four bytes bigger"), |p| {
                    p.buffers[m].bytes += 4
                });
            }
            let class = if b.class == Class::Rows {
                Class::Stored
            } else {
                Class::Rows
            };
            self.add(format!("buffer {m} is of another class"), |p| {
                p.buffers[m].class = class
            });
        }
        for (p, phase) in self.phases() {
            for k in 0..phase.pools.len() {
                // the planner gives exactly as many as are taken at once
                self.add_in(p, &format!("pool {k} has a slot too few"), |q| {
                    q.pools[k].slots -= 1
                });
                // a slot is its widest row, rounded up
                self.add_in(p, &format!("pool {k} has smaller slots"), |q| {
                    q.pools[k].slot_bytes -= ALIGN
                });
                self.add_in(p, &format!("pool {k} has misaligned slots"), |q| {
                    q.pools[k].slot_bytes -= 4
                });
                self.add_in(p, &format!("pool {k} has bigger slots than bytes"), |q| {
                    q.pools[k].slot_bytes += ALIGN
                });
            }
        }
    }

    fn owners(&mut self) {
        let all = 0..self.base.buffers.len();
        let other = |mem: MemId| all.clone().map(|m| MemId(m as u32)).find(|&m| m != mem);
        let beyond = MemId(self.base.buffers.len() as u32);
        for k in 0..self.graph.nodes.len() {
            if let Some(mem) = self.base.node_mem[k] {
                self.add(format!("node {k} has no buffer"), |p| p.node_mem[k] = None);
                self.add(format!("node {k} has another's buffer"), |p| {
                    p.node_mem[k] = other(mem)
                });
                self.add(format!("node {k} has a buffer that is none"), |p| {
                    p.node_mem[k] = Some(beyond)
                });
            } else {
                self.add(format!("node {k} has a buffer"), |p| {
                    p.node_mem[k] = Some(MemId(0))
                });
            }
        }
        for k in 0..self.graph.tensors.len() {
            if let Some(mem) = self.base.tensor_mem[k] {
                self.add(format!("tensor {k} has no buffer"), |p| {
                    p.tensor_mem[k] = None
                });
                self.add(format!("tensor {k} has another's buffer"), |p| {
                    p.tensor_mem[k] = other(mem)
                });
                self.add(format!("tensor {k} has a buffer that is none"), |p| {
                    p.tensor_mem[k] = Some(beyond)
                });
            } else {
                self.add(format!("tensor {k} has a buffer"), |p| {
                    p.tensor_mem[k] = Some(MemId(0))
                });
            }
        }
        self.add("a buffer too many".into(), |p| {
            let spare = Buffer {
                bytes: 0,
                ..p.buffers[0].clone()
            };
            p.buffers.push(spare);
        });
        for (p, phase) in self.phases() {
            for (k, pool) in phase.pools.iter().enumerate() {
                self.add_in(p, &format!("pool {k} is in another's buffer"), |q| {
                    q.pools[k].mem = other(pool.mem).expect("several buffers");
                });
                self.add_in(p, &format!("pool {k} is in a buffer that is none"), |q| {
                    q.pools[k].mem = beyond
                });
            }
            for (k, home) in phase.homes.iter().enumerate() {
                match *home {
                    Home::Stored(mem) => {
                        let mem = other(mem).expect("several buffers");
                        self.add_in(p, &format!("rows {k} are stored elsewhere"), |q| {
                            q.homes[k] = Home::Stored(mem)
                        });
                        self.add_in(p, &format!("rows {k} are not stored"), |q| {
                            q.homes[k] = Home::Slots(0)
                        });
                    }
                    Home::Slots(pool) => {
                        let stored = Home::Stored(phase.pools[pool].mem);
                        self.add_in(p, &format!("rows {k} are stored"), |q| q.homes[k] = stored);
                        let none = phase.pools.len();
                        self.add_in(p, &format!("rows {k} are in pool {none}"), |q| {
                            q.homes[k] = Home::Slots(none)
                        });
                        // a pool of bigger slots may have room
                        for (q, small) in phase.pools.iter().enumerate() {
                            if small.slot_bytes < phase.pools[pool].slot_bytes {
                                self.add_in(
                                    p,
                                    &format!("rows {k} are in the smaller pool {q}"),
                                    |phase| {
                                        phase.homes[k] = Home::Slots(q);
                                    },
                                );
                            }
                        }
                    }
                }
            }
            self.add_in(p, "a home too few", |q| q.homes.truncate(q.homes.len() - 1));
        }
        for &(id, _) in &self.graph.constants {
            self.add(
                format!("constant {} has a place that nobody fills", id.0),
                |p| {
                    let mem = MemId(p.buffers.len() as u32);
                    let (bytes, offset) = (
                        self.graph.tensor(id).bytes(),
                        p.arena_bytes.next_multiple_of(ALIGN),
                    );
                    let (birth, death) = (p.script.len() + 1, p.script.len() + 1);
                    p.buffers.push(Buffer {
                        name: "constant".into(),
                        class: Class::Whole,
                        bytes,
                        birth,
                        death,
                        offset,
                    });
                    p.tensor_mem[id.at()] = Some(mem);
                    (p.arena_bytes, p.peak.arena) = (offset + bytes, offset + bytes);
                    p.script.insert(0, Instr::Alloc { mem });
                    p.script.push(Instr::Free { mem });
                    super::script::retell(p);
                },
            );
        }
        self.add("a node too few".into(), |p| {
            p.node_mem.truncate(p.node_mem.len() - 1)
        });
        self.add("a tensor too many".into(), |p| p.tensor_mem.push(None));
    }

    fn sums(&mut self) {
        let total = self.base.peak.total();
        self.add("a budget a byte too small".into(), |p| {
            p.options.memory = Some(total - 1)
        });
        self.add("a peak that is no number".into(), |p| {
            p.peak.program = u64::MAX
        });
        self.add("an arena that is not counted".into(), |p| p.peak.arena -= 1);
        self.add("io that is not counted".into(), |p| p.options.io_bytes += 1);
        self.add("constants that are not counted".into(), |p| {
            p.peak.constants -= 1
        });
        let top = self
            .base
            .buffers
            .iter()
            .map(|b| b.offset + b.bytes)
            .max()
            .expect("buffers");
        self.add("a smaller arena, not counted".into(), |p| {
            p.arena_bytes = top - 1
        });
        self.add("a smaller arena".into(), |p| {
            (p.arena_bytes, p.peak.arena) = (top - 1, top - 1)
        });
    }
}

/// Whether two buffers have bytes in common while both are alive.
pub(super) fn clash(a: &Buffer, b: &Buffer) -> bool {
    let both = a.birth < b.death && b.birth < a.death;
    let bytes = a.offset.max(b.offset) < a.offset.saturating_add(a.bytes).min(b.offset + b.bytes);
    both && bytes
}
