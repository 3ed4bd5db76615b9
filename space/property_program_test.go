package space

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// The programs of the random worlds are formulas over small numbers, so that a change often leaves a result
// the same. A formula uses only values of formulas with lower numbers, so exactly one state satisfies all of
// them. The declared reads and writes are often wider, so the graph does have circles.

// formula is a node of a random program.
type formula struct {
	index int
	spec  NodeSpec // without Run
	// reads[0] is always read, and its parity selects either the even or the odd ones of the rest.
	reads []operand
	mod   int64
	// cell is the place that the node writes besides its output; with an envelope it writes one of two keys
	// there, and clears the other.
	cell Address
	// vanish makes a result of 0 remove the cell instead of being written to it.
	vanish bool
}

type operandKind uint8

const (
	readAt     operandKind = iota // the number at an address
	readSum                       // the sum of the keys of a document that count
	readKeys                      // the number of keys, read shallowly
	readHop                       // the target of the link
	readTarget                    // the address of the target
	readPeek                      // a value that does not matter
)

type operand struct {
	kind operandKind
	at   Address
}

var (
	rate  = Address{Space: "bank", Doc: "rate"}
	ref   = Address{Doc: "refs", Path: model.Path{"r"}}
	plain = []Address{{Doc: "in0"}, {Doc: "in1"}, {Doc: "in2"}}
	// keyed are inputs that come and go, in documents that have other keys too.
	keyed = []Address{
		{Doc: "bag", Path: model.Path{"a"}},
		{Doc: "bag", Path: model.Path{"b"}},
		{Doc: "shared0", Path: model.Path{"in"}},
		{Doc: "shared1", Path: model.Path{"in"}},
	}
	containers = []string{"bag", "shared0", "shared1"}
)

// maxTarget is the number of first formulas that a link may point to; the others may follow it.
const maxTarget = 3

// counts reports whether a key of a shared document counts for a formula: the key of an input, or of a
// formula with a lower number.
func counts(key string, below int) bool {
	number, ok := strings.CutPrefix(key, "n")
	if !ok {
		return true
	}
	i, err := strconv.Atoi(number)
	return err == nil && i < below
}

func (o *operand) read(tx *Tx, below int) (total int64) {
	switch o.kind {
	case readAt:
		if o.at.Space != "" {
			return num(tx.GetFrom(o.at.Space, o.at.Doc, o.at.Path...))
		}
		return num(tx.Get(o.at.Doc, o.at.Path...))
	case readSum:
		for key, v := range tx.Get(o.at.Doc).All() {
			if counts(key, below) {
				total += num(v)
			}
		}
	case readKeys:
		for key := range tx.GetShallow(o.at.Doc).All() {
			if counts(key, below) {
				total++
			}
		}
	case readHop:
		return num(tx.Get(ref.Doc, ref.Path...))
	case readTarget:
		l, _ := tx.Link(ref.Doc, ref.Path...)
		return targetNumber(l)
	case readPeek:
		tx.Peek(o.at.Doc, o.at.Path...)
	}
	return total
}

func targetNumber(l model.Link) int64 { return int64(len(l.Doc) + len(l.Path)) }

func (f *formula) eval(read func(o *operand) int64) int64 {
	if len(f.reads) == 0 {
		return 1
	}
	first := read(&f.reads[0])
	total := first
	for i := range f.reads[1:] {
		if int64(i)%2 == first&1 {
			total += read(&f.reads[1+i])
		}
	}
	return total % f.mod
}

// beside returns the number in the cell if the result of the formula is v.
func (f *formula) beside(v int64) int64 { return (v + 1) % f.mod }

// lobe returns the keys inside the envelope that are written and cleared.
func lobe(v int64) (written, cleared string) {
	if v%2 == 0 {
		return "a", "b"
	}
	return "b", "a"
}

func (f *formula) materializes() bool { return len(f.spec.Envelope) > 0 }

func (f *formula) write(tx *Tx, v int64) {
	switch {
	case f.cell.Doc == "":
	case f.materializes():
		written, cleared := lobe(v)
		tx.Set(f.cell.Doc, f.beside(v)+1, join(f.cell.Path, model.Path{written})...)
		tx.Delete(f.cell.Doc, join(f.cell.Path, model.Path{cleared})...)
	case f.vanish && f.beside(v) == 0:
		tx.Delete(f.cell.Doc, f.cell.Path...)
	default:
		tx.Set(f.cell.Doc, f.beside(v), f.cell.Path...)
	}
}

// formulas are those of one random world: the first ones make up the program, the others are registered and
// removed while it runs.
type formulas struct {
	all    []*formula
	static int
	// seen has the results of effects, by space and node.
	seen map[*transactions]map[string]int64
}

func (fs *formulas) node(f *formula) NodeSpec {
	spec := f.spec
	spec.Run = func(tx *Tx) (model.Value, error) {
		v := f.eval(func(o *operand) int64 { return o.read(tx, f.index) })
		f.write(tx, v)
		if spec.Kind == Effect {
			if fs.seen[tx.of.core] == nil {
				fs.seen[tx.of.core] = map[string]int64{}
			}
			fs.seen[tx.of.core][spec.ID] = v
		}
		return model.Int(v), nil
	}
	return spec
}

// cells returns the addresses at which the formula writes a number.
func (f *formula) cells() (out []Address) {
	if f.spec.Output != "" {
		out = append(out, Address{Doc: f.spec.Output})
	}
	switch {
	case f.cell.Doc == "":
	case f.materializes():
		for _, key := range []string{"a", "b"} {
			out = append(out, Address{Doc: f.cell.Doc, Path: join(f.cell.Path, model.Path{key})})
		}
	default:
		out = append(out, f.cell)
	}
	return out
}

func genFormulas(t *rapid.T) *formulas {
	fs := &formulas{static: rapid.IntRange(1, 6).Draw(t, "program"), seen: map[*transactions]map[string]int64{}}
	known := slices.Concat(plain, keyed, []Address{rate})
	for i := range fs.static + rapid.IntRange(0, 3).Draw(t, "others") {
		f := genFormula(t, i, known)
		fs.all = append(fs.all, f)
		known = append(known, f.cells()...)
	}
	return fs
}

var kinds = rapid.SampledFrom([]string{
	"output", "output", "output", "output", "volatile", "both", "side", "side",
	"effect", "writing effect", "materializer", "materializer with output",
})

func genFormula(t *rapid.T, i int, known []Address) *formula {
	f := &formula{index: i, mod: int64(rapid.IntRange(2, 5).Draw(t, "mod"))}
	f.spec = NodeSpec{ID: fmt.Sprint("n", i), Kind: Computation}
	kind := kinds.Draw(t, "kind")
	switch kind {
	case "output", "volatile", "both", "materializer with output":
		f.spec.Output = fmt.Sprint("out", i)
		f.spec.Volatile = kind == "volatile"
	case "effect", "writing effect":
		f.spec.Kind = Effect
	}
	switch kind {
	case "both", "side", "writing effect":
		f.genCell(t)
	case "materializer", "materializer with output":
		f.genCell(t)
		f.spec.Writes, f.spec.Envelope = nil, f.spec.Writes
	case "effect":
		f.spec.Group = rapid.SampledFrom([]string{"", "", "g"}).Draw(t, "group")
	}
	for range rapid.IntRange(0, 4).Draw(t, "reads") {
		f.reads = append(f.reads, genOperand(t, i, known))
	}
	f.genExtras(t, known)
	return f
}

// genCell chooses a document, or a key of a shared one, and what is declared for it: the key, or the whole
// document.
func (f *formula) genCell(t *rapid.T) {
	at := Address{Doc: rapid.SampledFrom([]string{fmt.Sprint("side", f.index), "shared0", "shared1"}).Draw(t, "cell")}
	f.cell = at
	if strings.HasPrefix(at.Doc, "shared") {
		f.cell.Path = model.Path{fmt.Sprint("n", f.index)}
		if rapid.IntRange(0, 2).Draw(t, "wide") > 0 {
			at = f.cell
		}
	}
	f.spec.Writes = []Address{at}
	f.vanish = rapid.Bool().Draw(t, "vanish")
}

func genOperand(t *rapid.T, i int, known []Address) operand {
	kind := rapid.SampledFrom([]operandKind{
		readAt, readAt, readAt, readAt, readAt, readSum, readKeys, readHop, readTarget, readPeek,
	}).Draw(t, "read")
	if i < maxTarget && (kind == readHop || kind == readTarget) {
		kind = readAt
	}
	switch kind {
	case readSum, readKeys:
		return operand{kind, Address{Doc: rapid.SampledFrom(containers).Draw(t, "of")}}
	case readPeek:
		return operand{kind, rapid.SampledFrom(known).Draw(t, "at")}
	case readHop, readTarget:
		return operand{kind, ref}
	}
	return operand{kind, rapid.SampledFrom(known).Draw(t, "at")}
}

// genExtras adds rare features: gates, and declared reads, which need not be the actual ones.
func (f *formula) genExtras(t *rapid.T, known []Address) {
	switch rapid.IntRange(0, 9).Draw(t, "extra") {
	case 0:
		f.spec.Gate.Debounce = 10 * time.Millisecond
	case 1:
		f.spec.Gate.Throttle = 10 * time.Millisecond
	case 2, 3:
		f.spec.DeclaredReads = rapid.SliceOfN(rapid.SampledFrom(known), 1, 2).Draw(t, "declared")
	case 4:
		for _, o := range f.reads {
			f.spec.DeclaredReads = append(f.spec.DeclaredReads, o.at)
		}
	}
}

// targets returns the addresses that the link may point to.
func (fs *formulas) targets() []Address {
	out := slices.Concat(plain[:1], keyed[:1], keyed[2:3], []Address{rate})
	for _, f := range fs.all[:min(maxTarget, fs.static)] {
		out = append(out, f.cells()...)
	}
	return out
}

// reach adds every node that a read of the address may make live.
func (fs *formulas) reach(a Address, into map[string]bool) {
	if a.Space != "" {
		return
	}
	for _, f := range fs.all {
		if f.mayWrite(a) {
			fs.reachFrom(f, into)
		}
	}
}

func (f *formula) mayWrite(a Address) bool {
	if f.spec.Output == a.Doc {
		return true
	}
	return slices.ContainsFunc(slices.Concat(f.spec.Writes, f.spec.Envelope), func(s Address) bool {
		return s.Doc == a.Doc && s.Path.Overlaps(a.Path)
	})
}

// reachFrom adds a node and everything that it needs.
func (fs *formulas) reachFrom(f *formula, into map[string]bool) {
	if into[f.spec.ID] {
		return
	}
	into[f.spec.ID] = true
	for i := range f.reads {
		switch o := &f.reads[i]; o.kind {
		case readPeek: // makes nothing live
		case readHop:
			for _, a := range fs.targets() {
				fs.reach(a, into)
			}
		default:
			fs.reach(o.at, into)
		}
	}
	for _, a := range f.spec.DeclaredReads {
		fs.reach(a, into)
	}
}

// oracle evaluates one state naively: it evaluates a formula by evaluating its reads, from the inputs up. It
// knows nothing of nodes, demand or logs.
type oracle struct {
	fs *formulas
	// has reports which formulas exist. What the others have written is an input.
	has   func(f *formula) bool
	input func(doc string) model.Value
	rate  int64
	known map[*formula]int64
}

func (o *oracle) value(f *formula) int64 {
	if v, ok := o.known[f]; ok {
		return v // of this very state
	}
	v := f.eval(func(p *operand) int64 { return o.operand(p, f.index) })
	if o.known == nil {
		o.known = map[*formula]int64{}
	}
	o.known[f] = v
	return v
}

func (o *oracle) operand(p *operand, below int) (total int64) {
	switch p.kind {
	case readAt:
		return o.at(p.at)
	case readSum, readKeys:
		return o.container(p, below)
	case readHop, readTarget:
		l, ok := o.input(ref.Doc).At(ref.Path).AsLink()
		if p.kind == readTarget {
			return targetNumber(l)
		}
		if ok {
			return o.at(Address{Space: l.Space, Doc: l.Doc, Path: l.Path})
		}
	}
	return 0
}

// at returns the number at an address.
func (o *oracle) at(a Address) int64 {
	if a.Space != "" {
		return o.rate
	}
	for _, f := range o.fs.all {
		if !o.has(f) || !slices.ContainsFunc(f.cells(), func(c Address) bool { return c.String() == a.String() }) {
			continue
		}
		v := o.value(f)
		if a.Doc == f.spec.Output {
			return v
		}
		if !f.materializes() {
			return f.beside(v)
		}
		if written, _ := lobe(v); a.Path[len(a.Path)-1] == written {
			return f.beside(v) + 1
		}
		return 0
	}
	return num(o.input(a.Doc).At(a.Path))
}

// container sums or counts the keys of a document that count for formulas below a number.
func (o *oracle) container(p *operand, below int) (total int64) {
	computed := map[string]bool{}
	for _, f := range o.fs.all {
		if !o.has(f) || f.cell.Doc != p.at.Doc {
			continue
		}
		key := f.cell.Path[0]
		computed[key] = true
		if !counts(key, below) {
			continue
		}
		switch v := o.value(f); {
		case p.kind == readKeys && (f.materializes() || !f.vanish || f.beside(v) != 0):
			total++
		case p.kind == readSum && !f.materializes():
			total += f.beside(v)
		}
	}
	for key, v := range o.input(p.at.Doc).All() {
		switch {
		case computed[key] || !counts(key, below):
		case p.kind == readKeys:
			total++
		default:
			total += num(v)
		}
	}
	return total
}
