package model

import (
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// quick reads the encoding that AppendCommit writes: without spaces, the members in their order. Every follower decodes
// every commit, and the library takes four times as long. Whatever deviates, by one byte, is left to the library, which
// decides whether it is a commit.
type quick struct {
	*parser
	data []byte
	at   int
	// other is set once the input deviates. What was read is void then.
	other bool

	// Lists are read into these, and copied when their length is known.
	txs    []Tx
	writes []Write
	sends  []Send
	texts  []string
	held   []uint64
}

var quicks pool[quick]

// quickCommit decodes a commit, and returns nil if the encoding is not that of AppendCommit.
func quickCommit(data []byte) *Commit {
	q := quicks.get()
	q.parser, q.data, q.at, q.other = parsers.get(), data, 0, false
	defer q.done()
	c := &Commit{}
	q.commit(c)
	if q.other || q.at != len(data) {
		return nil
	}
	return c
}

// quickValue decodes a value, and returns false if the encoding is not that of Value.AppendJSON.
func quickValue(data []byte) (Value, bool) {
	q := quicks.get()
	q.parser, q.data, q.at, q.other = parsers.get(), data, 0, false
	defer q.done()
	v := q.value(0)
	return v, !q.other && q.at == len(data)
}

// done returns what was borrowed, without references to what was read.
func (q *quick) done() {
	q.release()
	q.parser, q.data = nil, nil
	q.txs, q.writes, q.sends, q.texts, q.held = kept(q.txs), kept(q.writes), kept(q.sends), kept(q.texts), kept(q.held)
	quicks.put(q)
}

// kept returns a list for the next commit, unless it has become large.
func kept[T any](list []T) []T {
	const most = 256
	if cap(list) > most {
		return nil
	}
	return pop(list, 0) // only an input that deviates leaves something
}

// list reads a list with at least one element.
func list[T any](q *quick, into *[]T, element func(*quick) T) []T {
	base := len(*into)
	q.must("[")
	for more := true; more && !q.other; {
		x := element(q)
		*into = append(*into, x)
		more = q.skip(",")
	}
	q.must("]")
	own := make([]T, len(*into)-base)
	copy(own, (*into)[base:])
	*into = pop(*into, base)
	return own
}

// skip passes a text, and reports whether it was there.
func (q *quick) skip(s string) bool {
	if len(q.data)-q.at < len(s) || string(q.data[q.at:q.at+len(s)]) != s {
		return false
	}
	q.at += len(s)
	return true
}

func (q *quick) must(s string) {
	if !q.skip(s) {
		q.other = true
	}
}

// next returns the next byte, 0 at the end.
func (q *quick) next() byte {
	if q.at == len(q.data) {
		return 0
	}
	return q.data[q.at]
}

// string returns the text of a JSON string, valid until the next call.
func (q *quick) string() []byte {
	if !q.skip(`"`) {
		q.other = true
		return nil
	}
	start, plain, ascii := q.at, true, true
	for ; q.at < len(q.data); q.at++ {
		switch b := q.data[q.at]; {
		case b == '"':
			q.at++
			return q.unquote(q.data[start-1:q.at], plain, ascii)
		case b == '\\':
			plain = false
			q.at++
		case b < ' ':
			q.other = true
			return nil
		case b >= utf8.RuneSelf:
			ascii = false
		}
	}
	q.other, q.at = true, len(q.data)
	return nil
}

func (q *quick) unquote(raw []byte, plain, ascii bool) []byte {
	s := raw[1 : len(raw)-1]
	if plain {
		q.other = q.other || !ascii && !utf8.Valid(s)
		return s
	}
	s, err := jsontext.AppendUnquote(q.unquoted[:0], raw)
	q.unquoted = s
	q.other = q.other || err != nil
	return s
}

func (q *quick) text() string { return string(q.string()) }

// name is text for texts that commits repeat.
func (q *quick) name() string {
	name, _ := q.interned.key(q.string())
	return name
}

// digits passes the digits of a number. It needs at least one.
func (q *quick) digits() {
	start := q.at
	for b := q.next(); b >= '0' && b <= '9'; b = q.next() {
		q.at++
	}
	if q.at == start {
		q.other = true
	}
}

func (q *quick) uint() uint64 {
	start := q.at
	q.digits()
	n, err := strconv.ParseUint(string(q.data[start:q.at]), 10, 64)
	if err != nil || q.at-start > 1 && q.data[start] == '0' {
		q.other = true
	}
	switch q.next() {
	case '.', 'e', 'E': // for the library
		q.other = true
	}
	return n
}

func (q *quick) int64() int64 {
	minus := q.skip("-")
	n := q.uint()
	if n > 1<<62 {
		q.other = true
	}
	if minus {
		return -int64(n)
	}
	return int64(n)
}

func (q *quick) count() int { return int(q.int64()) }

// number reads a number of a value.
func (q *quick) number() (v Value) {
	start := q.at
	q.skip("-")
	if !q.skip("0") {
		q.digits()
	}
	if q.skip(".") {
		q.digits()
	}
	if q.skip("e") || q.skip("E") {
		if !q.skip("+") {
			q.skip("-")
		}
		q.digits()
	}
	if q.other {
		return v
	}
	v, ok := number(q.data[start:q.at])
	q.other = !ok
	return v
}

// value reads a value that is nested in depth containers.
func (q *quick) value(depth int) Value {
	switch b := q.next(); {
	case q.other:
	case b == '{':
		return q.object(depth + 1)
	case b == '[':
		return q.array(depth + 1)
	case b == '"':
		return validString(q.text())
	case q.skip("null"):
		return Null()
	case q.skip("true"):
		return Bool(true)
	case q.skip("false"):
		return Bool(false)
	default:
		return q.number()
	}
	return Value{}
}

func (q *quick) array(depth int) Value {
	if depth > MaxDepth {
		q.other = true
		return Value{}
	}
	q.must("[")
	base := len(q.elements)
	for more := !q.skip("]"); more && !q.other; {
		v := q.value(depth)
		q.elements = append(q.elements, v)
		if more = q.skip(","); !more {
			q.must("]")
		}
	}
	if q.other {
		return Value{}
	}
	v := arrayOf(append([]Value(nil), q.elements[base:]...))
	q.elements = pop(q.elements, base)
	return v
}

// object reads an object with its keys in order.
func (q *quick) object(depth int) Value {
	if depth > MaxDepth {
		q.other = true
		return Value{}
	}
	q.must("{")
	base := len(q.members)
	for more := !q.skip("}"); more && !q.other; {
		key, hash := q.interned.key(q.string())
		if n := len(q.members); n > base && q.members[n-1].key >= key {
			q.other = true
			break
		}
		q.must(":")
		v := q.value(depth)
		q.members = append(q.members, member{key: key, hash: hash, value: v})
		if more = q.skip(","); !more {
			q.must("}")
		}
	}
	if q.other {
		return Value{}
	}
	v := q.build(q.members[base:])
	q.members = pop(q.members, base)
	return v
}

func (q *quick) textList() []string { return list(q, &q.texts, (*quick).text) }

func (q *quick) commit(c *Commit) {
	q.must(`{"v":`)
	c.Version = q.count()
	q.must(`,"sp":`)
	c.Space = q.name()
	q.must(`,"rt":`)
	c.Runtime = q.name()
	if q.skip(`,"ep":`) {
		c.Epoch = q.uint()
	}
	if q.skip(`,"at":`) {
		c.Attempt = q.uint()
	}
	c.Takeover = q.skip(`,"own":true`)
	c.Join = q.skip(`,"join":true`)
	if q.skip(`,"trm":`) {
		c.Term = q.uint()
	}
	if q.skip(`,"pg":`) {
		c.Program = q.name()
	}
	if q.skip(`,"try":`) {
		c.Trying = q.trying()
	}
	if q.skip(`,"tx":`) {
		c.Txs = list(q, &q.txs, (*quick).tx)
	}
	q.must(`,"cur":`)
	q.cursor(&c.Cursor)
	q.must(`}`)
}

func (q *quick) trying() *Trying {
	t := &Trying{}
	q.must(`{"by":`)
	t.By = q.name()
	q.must(`,"ev":`)
	t.Event = q.text()
	if q.skip(`,"n":`) {
		t.Tries = q.count()
	}
	t.Back = q.skip(`,"back":true`)
	q.must(`}`)
	return t
}

func (q *quick) cursor(c *Cursor) {
	if q.skip(`{}`) {
		return
	}
	q.must(`{`)
	first := true
	if q.skip(`"f":`) {
		c.Floor, first = q.uint(), false
	}
	if !first && q.skip(`,"h":`) || first && q.skip(`"h":`) {
		c.Held = list(q, &q.held, (*quick).uint)
	}
	q.must(`}`) // the longer form is for the library
}

func (q *quick) tx() (tx Tx) {
	q.must(`{"n":`)
	tx.N = q.uint()
	q.must(`,"by":`)
	tx.By = q.name()
	if q.skip(`,"why":`) {
		tx.Causes = q.textList()
	}
	if q.skip(`,"rd":`) {
		tx.Reads = q.textList()
	}
	if q.skip(`,"grp":`) {
		tx.Group = q.name()
	}
	if q.skip(`,"via":`) {
		tx.Via = q.trail()
	}
	if q.skip(`,"w":`) {
		tx.Writes = list(q, &q.writes, (*quick).write)
	}
	if q.skip(`,"rc":`) {
		tx.Receipt = q.receipt()
	}
	if q.skip(`,"snd":`) {
		tx.Sends = list(q, &q.sends, (*quick).send)
	}
	q.trace(&tx.Trace)
	q.must(`}`) // what waits, or stops waiting, is rare, and for the library
	return tx
}

func (q *quick) trail() *Trail {
	t := &Trail{}
	q.must(`{"d":`)
	t.Docs = q.textList()
	if q.skip(`,"n":`) {
		t.Steps = q.uint()
	}
	q.must(`}`)
	return t
}

func (q *quick) write() (w Write) {
	q.must(`[`)
	w.Doc = q.name()
	q.must(`,`)
	var err error
	if w.Path, err = ParsePath(q.name()); err != nil || w.Doc == "" {
		q.other = true
	}
	if w.Delete = q.skip(`]`); !w.Delete {
		q.must(`,`)
		w.Value = q.value(0)
		q.must(`]`)
	}
	return w
}

func (q *quick) receipt() *Receipt {
	r := &Receipt{}
	q.must(`{"ev":`)
	r.Event = q.text()
	if q.skip(`,"ln":`) {
		r.Lane = q.uint()
	}
	if q.skip(`,"pos":`) {
		r.Pos = q.uint()
	}
	if q.skip(`,"trm":`) {
		r.Term = q.uint()
	}
	if q.skip(`,"rk":`) {
		r.ReplayKey = q.uint()
	}
	q.must(`,"o":`)
	r.Outcome = outcome(q.string())
	if q.skip(`,"r":`) {
		r.Result = q.value(0)
	}
	if q.skip(`,"err":`) {
		r.Error = q.text()
	}
	if q.skip(`,"cd":`) {
		r.Code = q.text()
	}
	if q.skip(`,"n":`) {
		r.Attempts = q.count()
	}
	if q.skip(`,"sl":`) {
		r.Slot = q.uint()
	}
	if q.skip(`,"dp":`) {
		r.Depth = q.uint()
	}
	if q.skip(`,"rtn":`) {
		r.Returned = q.value(0)
	}
	q.must(`}`)
	return r
}

// outcome returns an outcome without allocating known ones.
func outcome(text []byte) Outcome {
	for _, o := range Outcomes {
		if string(o) == string(text) {
			return o
		}
	}
	return Outcome(text)
}

func (q *quick) send() (s Send) {
	q.must(`{"id":`)
	s.ID = q.text()
	q.must(`,"to":`)
	s.To = q.name()
	q.must(`,"st":`)
	s.Stream = q.name()
	if q.skip(`,"p":`) {
		s.Payload = q.value(0)
	}
	if q.skip(`,"pos":`) {
		s.Position = q.uint()
	}
	if q.skip(`,"ptm":`) {
		s.PrevTerm = q.uint()
	}
	if q.skip(`,"rk":`) {
		s.ReplayKey = q.uint()
	}
	if q.skip(`,"bh":`) {
		s.Behind = q.uint()
	}
	if q.skip(`,"dp":`) {
		s.Depth = q.uint()
	}
	if q.skip(`,"nb":`) {
		s.NotBefore = q.int64()
	}
	if q.skip(`,"ex":`) {
		s.Expires = q.int64()
	}
	if q.skip(`,"sl":`) {
		s.Slot = q.uint()
	}
	if q.skip(`,"tm":`) {
		s.Timer = q.text()
	}
	q.trace(&s.Trace)
	q.must(`}`)
	return s
}

func (q *quick) trace(t *Trace) {
	if q.skip(`,"tp":`) {
		t.Parent = q.text()
	}
	if q.skip(`,"ts":`) {
		t.State = q.text()
	}
	if q.skip(`,"bg":`) {
		t.Baggage = q.text()
	}
}
