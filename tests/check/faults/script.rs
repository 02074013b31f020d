//! The order of work, and lives within it.

use stripmill::graph::{Layout, Op};
use stripmill::plan::{Buffer, Instr, MemId, Plan};

use super::Faults;
use super::buffers::clash;

impl Faults<'_> {
    pub(super) fn script(&mut self) {
        self.dropped();
        self.doubled();
        self.swapped();
        self.lives();
    }

    fn dropped(&mut self) {
        for i in 0..self.base.script.len() {
            self.add(format!("script: {i} is missing"), |p| {
                p.script.remove(i);
            });
            // the same with births and deaths told right: what remains is the instruction's own lack
            self.add(format!("script: {i} is missing, and nobody knows"), |p| {
                p.script.remove(i);
                retell(p);
            });
        }
    }

    fn doubled(&mut self) {
        for (i, instr) in self.base.script.iter().enumerate() {
            self.add(format!("script: {i} twice"), |p| {
                p.script.insert(i + 1, *instr);
                retell(p);
            });
        }
        let (phases, nodes) = (self.base.phases.len(), self.graph.nodes.len() as u32);
        let node = stripmill::graph::NodeId(nodes);
        let none = [
            Instr::Sweep { phase: phases },
            Instr::Pack { node },
            Instr::Dense { node },
        ];
        for instr in none.into_iter().chain([Instr::Alloc {
            mem: MemId(self.base.buffers.len() as u32),
        }]) {
            self.add(format!("script: {instr:?}, which is none"), |p| {
                p.script.push(instr)
            });
        }
    }

    /// Neighbours in the wrong order. Two allocations may stand in any order, and so may two frees.
    fn swapped(&mut self) {
        for i in 1..self.base.script.len() {
            let (a, b) = (self.base.script[i - 1], self.base.script[i]);
            let matters = match (a, b) {
                // the planner allocates a buffer right before the first work that uses it, but for
                // whole inputs, which have their values from then on, and for weights, which are there
                // from the start
                (Instr::Alloc { mem }, Instr::Pack { node }) => {
                    self.base.node_mem[node.at()] == Some(mem)
                }
                (Instr::Alloc { mem }, work) if is_work(work) => {
                    !self.is_input(mem) || self.first_work(i)
                }
                // and frees it right after the last; outputs and weights after all work
                (work, Instr::Free { .. }) if is_work(work) => true,
                (Instr::Free { mem: a }, Instr::Alloc { mem: b }) => {
                    let longer = Buffer {
                        death: usize::MAX,
                        ..self.base.buffers[a.at()].clone()
                    };
                    clash(&longer, &self.base.buffers[b.at()])
                }
                (a, b) if is_work(a) && is_work(b) => self.needs(a, b),
                _ => false,
            };
            if matters {
                self.add(
                    format!("script: {} after {i}, and nobody knows", i - 1),
                    |p| {
                        p.script.swap(i - 1, i);
                        retell(p);
                    },
                );
            }
            // told wrong, a birth or a death is always a fault
            if !is_work(a) || !is_work(b) {
                self.add(format!("script: {} after {i}", i - 1), |p| {
                    p.script.swap(i - 1, i)
                });
            }
        }
        // weights are packed before anything else, even where the op that comes first needs others
        let op = self
            .base
            .script
            .iter()
            .position(|i| matches!(i, Instr::Dense { .. } | Instr::Sweep { .. }));
        for (i, instr) in self.base.script.iter().enumerate() {
            if let (Instr::Pack { .. }, Some(op)) = (instr, op) {
                self.add(format!("script: {i} after the first op"), |p| {
                    p.script.remove(i);
                    p.script.insert(op, *instr);
                    retell(p);
                });
            }
        }
        let works: Vec<usize> = (0..self.base.script.len())
            .filter(|&i| is_work(self.base.script[i]))
            .collect();
        for pair in works.windows(2) {
            if self.needs(self.base.script[pair[0]], self.base.script[pair[1]]) {
                self.add(
                    format!("script: the work of {} and {} changed", pair[0], pair[1]),
                    |p| {
                        p.script.swap(pair[0], pair[1]);
                    },
                );
            }
        }
    }

    fn lives(&mut self) {
        for (m, b) in self.base.buffers.iter().enumerate() {
            let mem = MemId(m as u32);
            self.add(format!("buffer {m} is born later, it says"), |p| {
                p.buffers[m].birth += 1
            });
            self.add(format!("buffer {m} dies later, it says"), |p| {
                p.buffers[m].death += 1
            });
            self.add(format!("buffer {m} dies earlier, it says"), |p| {
                p.buffers[m].death -= 1
            });
            // between the two there is work that needs it
            self.add(format!("buffer {m} is freed at once"), |p| {
                p.script.remove(b.death);
                p.script.insert(b.birth + 1, Instr::Free { mem });
                retell(p);
            });
            self.add(format!("buffer {m} is allocated at last"), |p| {
                p.script.remove(b.birth);
                p.script.insert(b.death - 1, Instr::Alloc { mem });
                retell(p);
            });
            self.add(format!("buffer {m} is freed before it is allocated"), |p| {
                p.script.swap(b.birth, b.death);
                retell(p);
            });
            // one piece of work too early: the last before its death uses it
            let work = (0..b.death)
                .rev()
                .find(|&i| is_work(self.base.script[i]))
                .expect("work");
            self.add(format!("buffer {m} is freed a work too early"), |p| {
                p.script.remove(b.death);
                p.script.insert(work, Instr::Free { mem });
                retell(p);
            });
        }
    }

    /// Whether `b` needs that `a` has ended: a sweep the weights and ops before it; every op but a
    /// pack, because weights come first.
    fn needs(&self, a: Instr, b: Instr) -> bool {
        match (a, b) {
            (Instr::Pack { .. }, Instr::Pack { .. }) => false,
            (Instr::Pack { .. }, _) => true,
            (Instr::Dense { node: a }, Instr::Dense { node: b }) => {
                let made = &self.graph.node(a).outputs;
                self.graph
                    .node(b)
                    .whole
                    .iter()
                    .flatten()
                    .any(|t| made.contains(t))
            }
            // the graphs of this suite have a sweep's ops between its phases
            (Instr::Sweep { .. }, Instr::Dense { node }) => {
                let by_gather = |t| {
                    self.graph
                        .nodes
                        .iter()
                        .any(|n| matches!(n.op, Op::Gather(_)) && n.outputs.contains(t))
                };
                self.graph.node(node).whole.iter().flatten().any(by_gather)
            }
            (Instr::Dense { node }, Instr::Sweep { phase }) => {
                let made = &self.graph.node(node).outputs;
                self.base.phases[phase]
                    .sweep
                    .steps
                    .iter()
                    .any(|s| match s.work {
                        stripmill::sweep::Work::Node(id) => self
                            .graph
                            .node(id)
                            .whole
                            .iter()
                            .flatten()
                            .any(|t| made.contains(t)),
                        _ => false,
                    })
            }
            // a phase has something that an earlier one made
            (Instr::Sweep { .. }, Instr::Sweep { phase }) => {
                let recall = |s: &stripmill::sweep::Step| s.work == stripmill::sweep::Work::Recall;
                self.base.phases[phase].sweep.steps.iter().any(recall)
            }
            _ => false,
        }
    }

    fn is_input(&self, mem: MemId) -> bool {
        let inputs = self
            .graph
            .inputs
            .iter()
            .filter(|t| self.graph.tensor(**t).layout == Layout::Whole);
        inputs
            .map(|t| self.base.tensor_mem[t.at()])
            .any(|m| m == Some(mem))
    }

    /// Whether instruction `i` is the first op.
    fn first_work(&self, i: usize) -> bool {
        let op = |i: &Instr| matches!(i, Instr::Dense { .. } | Instr::Sweep { .. });
        self.base.script.iter().position(op) == Some(i)
    }
}

fn is_work(instr: Instr) -> bool {
    !matches!(instr, Instr::Alloc { .. } | Instr::Free { .. })
}

/// Makes births and deaths those of the script.
pub(super) fn retell(plan: &mut Plan) {
    for (i, instr) in plan.script.iter().enumerate() {
        match *instr {
            Instr::Alloc { mem } => plan.buffers[mem.at()].birth = i,
            Instr::Free { mem } => plan.buffers[mem.at()].death = i,
            _ => {}
        }
    }
}
