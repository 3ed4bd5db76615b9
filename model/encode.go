package model

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// The encoder is written by hand because it runs once per event, on the way into the log; a test compares it
// with the reflective one. See quick.go for the other direction.

// AppendTx appends the encoding of tx to dst, after a comma unless dst is empty: the encodings of a group are
// in one buffer, so that their size is known before the commit is sealed.
func AppendTx(dst []byte, tx *Tx) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	dst = append(dst, `{"n":`...)
	dst = strconv.AppendUint(dst, tx.N, 10)
	dst = appendText(append(dst, `,"by":`...), tx.By)
	dst = appendTexts(dst, `,"why":`, tx.Causes)
	dst = appendTexts(dst, `,"rd":`, tx.Reads)
	if tx.Group != "" {
		dst = appendText(append(dst, `,"grp":`...), tx.Group)
	}
	if tx.Via != nil {
		dst = appendTrail(append(dst, `,"via":`...), tx.Via)
	}
	dst = appendWrites(dst, tx.Writes)
	if tx.Receipt != nil {
		dst = appendReceipt(append(dst, `,"rc":`...), tx.Receipt)
	}
	if tx.Later != nil {
		dst = appendWaiting(append(dst, `,"ltr":`...), tx.Later)
	}
	dst = appendCancels(dst, tx.Cancels)
	dst = appendSends(dst, tx.Sends)
	dst = appendTrace(dst, tx.Trace)
	return append(dst, '}')
}

// AppendCommit appends the encoding of c to dst. txs is the result of AppendTx for c.Txs, or nil to
// encode them here.
func AppendCommit(dst []byte, c *Commit, txs []byte) []byte {
	if txs == nil {
		for i := range c.Txs {
			txs = AppendTx(txs, &c.Txs[i])
		}
	}
	version := c.Version
	if c.Cursor.ranged() && version == CommitVersion {
		version = RangedCommitVersion
	}
	dst = append(dst, `{"v":`...)
	dst = strconv.AppendInt(dst, int64(version), 10)
	dst = appendText(append(dst, `,"sp":`...), c.Space)
	dst = appendText(append(dst, `,"rt":`...), c.Runtime)
	dst = appendNumber(dst, `,"ep":`, c.Epoch)
	dst = appendNumber(dst, `,"at":`, c.Attempt)
	if c.Takeover {
		dst = append(dst, `,"own":true`...)
	}
	if c.Join {
		dst = append(dst, `,"join":true`...)
	}
	dst = appendNumber(dst, `,"trm":`, c.Term)
	if c.Program != "" {
		dst = appendText(append(dst, `,"pg":`...), c.Program)
	}
	if c.Trying != nil {
		dst = appendTrying(append(dst, `,"try":`...), c.Trying)
	}
	if len(txs) > 0 {
		dst = append(append(append(dst, `,"tx":[`...), txs...), ']')
	}
	dst = appendCursor(append(dst, `,"cur":`...), c.Cursor)
	return append(dst, '}')
}

func appendTrail(dst []byte, t *Trail) []byte {
	dst = append(dst, `{"d":[`...)
	for i, d := range t.Docs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, d)
	}
	dst = appendNumber(append(dst, ']'), `,"n":`, t.Steps)
	return append(dst, '}')
}

func appendTrying(dst []byte, t *Trying) []byte {
	dst = appendText(append(dst, `{"by":`...), t.By)
	dst = appendText(append(dst, `,"ev":`...), t.Event)
	dst = appendNumber(dst, `,"n":`, uint64(t.Tries))
	if t.Back {
		dst = append(dst, `,"back":true`...)
	}
	return append(dst, '}')
}

// closeObject turns the members that were appended after start, each after a comma, into an object.
func closeObject(dst []byte, start int) []byte {
	if len(dst) == start {
		return append(dst, '{', '}')
	}
	dst[start] = '{'
	return append(dst, '}')
}

func appendWrites(dst []byte, writes []Write) []byte {
	if len(writes) == 0 {
		return dst
	}
	dst = append(dst, `,"w":[`...)
	for i := range writes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = writes[i].appendJSON(dst)
	}
	return append(dst, ']')
}

func appendReceipt(dst []byte, r *Receipt) []byte {
	dst = appendText(append(dst, `{"ev":`...), r.Event)
	dst = appendNumber(dst, `,"ln":`, r.Lane)
	dst = appendNumber(dst, `,"pos":`, r.Pos)
	dst = appendNumber(dst, `,"trm":`, r.Term)
	dst = appendNumber(dst, `,"rk":`, r.ReplayKey)
	dst = appendText(append(dst, `,"o":`...), string(r.Outcome))
	if !r.Result.IsAbsent() {
		dst = r.Result.AppendJSON(append(dst, `,"r":`...))
	}
	if r.Error != "" {
		dst = appendText(append(dst, `,"err":`...), r.Error)
	}
	if r.Code != "" {
		dst = appendText(append(dst, `,"cd":`...), r.Code)
	}
	dst = appendNumber(dst, `,"n":`, uint64(r.Attempts))
	dst = appendNumber(dst, `,"sl":`, r.Slot)
	dst = appendNumber(dst, `,"dp":`, r.Depth)
	if !r.Returned.IsAbsent() {
		dst = r.Returned.AppendJSON(append(dst, `,"rtn":`...))
	}
	return append(dst, '}')
}

func appendWaiting(dst []byte, w *Waiting) []byte {
	dst = appendText(append(dst, `{"id":`...), w.ID)
	dst = appendText(append(dst, `,"st":`...), w.Stream)
	if !w.Payload.IsAbsent() {
		dst = w.Payload.AppendJSON(append(dst, `,"p":`...))
	}
	dst = strconv.AppendInt(append(dst, `,"nb":`...), w.NotBefore, 10)
	dst = appendNumber(dst, `,"ex":`, uint64(max(w.Expires, 0)))
	dst = strconv.AppendUint(append(dst, `,"sl":`...), w.Slot, 10)
	if w.Timer != "" {
		dst = appendText(append(dst, `,"tm":`...), w.Timer)
	}
	dst = appendNumber(dst, `,"ln":`, w.Lane)
	dst = appendNumber(dst, `,"pos":`, w.Position)
	dst = appendNumber(dst, `,"trm":`, w.Term)
	dst = appendNumber(dst, `,"rk":`, w.ReplayKey)
	dst = appendNumber(dst, `,"dp":`, w.Depth)
	dst = appendNumber(dst, `,"sq":`, w.Seq)
	dst = appendNumber(dst, `,"i":`, uint64(w.Nth))
	dst = appendTrace(dst, w.Trace)
	return append(dst, '}')
}

func appendCancels(dst []byte, list []Cancel) []byte {
	if len(list) == 0 {
		return dst
	}
	dst = append(dst, `,"cnl":[`...)
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(append(dst, `{"id":`...), list[i].ID)
		dst = strconv.AppendUint(append(dst, `,"sl":`...), list[i].Slot, 10)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

func appendSends(dst []byte, sends []Send) []byte {
	if len(sends) == 0 {
		return dst
	}
	dst = append(dst, `,"snd":[`...)
	for i := range sends {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendSend(dst, &sends[i])
	}
	return append(dst, ']')
}

func appendSend(dst []byte, s *Send) []byte {
	dst = appendText(append(dst, `{"id":`...), s.ID)
	dst = appendText(append(dst, `,"to":`...), s.To)
	dst = appendText(append(dst, `,"st":`...), s.Stream)
	if !s.Payload.IsAbsent() {
		dst = s.Payload.AppendJSON(append(dst, `,"p":`...))
	}
	dst = appendNumber(dst, `,"pos":`, s.Position)
	dst = appendNumber(dst, `,"ptm":`, s.PrevTerm)
	dst = appendNumber(dst, `,"rk":`, s.ReplayKey)
	dst = appendNumber(dst, `,"bh":`, s.Behind)
	dst = appendNumber(dst, `,"dp":`, s.Depth)
	if s.NotBefore != 0 {
		dst = strconv.AppendInt(append(dst, `,"nb":`...), s.NotBefore, 10)
	}
	dst = appendNumber(dst, `,"ex":`, uint64(max(s.Expires, 0)))
	dst = appendNumber(dst, `,"sl":`, s.Slot)
	if s.Timer != "" {
		dst = appendText(append(dst, `,"tm":`...), s.Timer)
	}
	dst = appendTrace(dst, s.Trace)
	return append(dst, '}')
}

func appendTrace(dst []byte, t Trace) []byte {
	if t.Parent != "" {
		dst = appendText(append(dst, `,"tp":`...), t.Parent)
	}
	if t.State != "" {
		dst = appendText(append(dst, `,"ts":`...), t.State)
	}
	if t.Baggage != "" {
		dst = appendText(append(dst, `,"bg":`...), t.Baggage)
	}
	return dst
}

func appendNumber(dst []byte, member string, n uint64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendUint(append(dst, member...), n, 10)
}

func appendTexts(dst []byte, member string, list []string) []byte {
	if len(list) == 0 {
		return dst
	}
	dst = append(append(dst, member...), '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, s)
	}
	return append(dst, ']')
}

// appendText appends a JSON string. Text that is not valid UTF-8 is repaired: it can only be an
// error message.
func appendText(dst []byte, s string) []byte {
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		out, _ = jsontext.AppendQuote(dst, string([]rune(s)))
	}
	return out
}
