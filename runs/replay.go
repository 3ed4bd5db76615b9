package runs

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/workflow"
)

// errGone reports that a record that is needed is not kept.
var errGone = errors.New("is not kept")

// log reads the records of a run.
type log struct {
	id   string
	doc  model.Value // of the run
	read func(doc string) model.Value
	// ahead, if not nil, is called with documents that will be read soon, if they exist; fetched is the page before which it was called.
	ahead   func(docs []string)
	fetched int
}

// fetchedPages is how many pages are fetched ahead.
const fetchedPages = 16

// fetch fetches a page and those behind it.
func (l *log) fetch(page int) {
	if l.ahead == nil || page < l.fetched {
		return
	}
	docs := make([]string, fetchedPages)
	for i := range docs {
		docs[i] = pageDoc(l.id, page+i)
	}
	l.ahead(docs)
	l.fetched = page + fetchedPages
}

// oldest returns the first page that is kept. A run that was stored by an earlier version has only the pages
// after its snapshot, without a note of the first.
func (l *log) oldest() int {
	if from, is := l.doc.Get(inPages).Get(inFrom).AsInt(); is {
		return int(from)
	}
	if text, is := l.read(snapshotDoc(l.id)).AsString(); is && l.read(pageDoc(l.id, 0)).IsAbsent() {
		var s snapshot
		if json.Unmarshal([]byte(text), &s) == nil {
			return s.Page
		}
	}
	return 0
}

// text returns the next record of a driver. It is on the next page if a snapshot was made before it, which the
// driver need not know of, and on the page before if an earlier version has stored it, whose pages were larger.
func (l *log) text(d *driver) (string, error) {
	key := strconv.Itoa(d.n)
	for _, page := range [...]int{d.page, d.page + 1, d.page - 1} {
		l.fetch(page)
		if text, is := l.read(pageDoc(l.id, page)).Get(key).AsString(); is {
			if page != d.page {
				d.page, d.size = page, 0
			}
			return text, nil
		}
	}
	return "", fmt.Errorf("record %d %w", d.n, errGone)
}

// next returns the next record of a driver.
func (l *log) next(d *driver) (rec record, text []byte, err error) {
	s, err := l.text(d)
	if err != nil {
		return rec, nil, err
	}
	if err := json.Unmarshal([]byte(s), &rec); err != nil {
		return rec, nil, fmt.Errorf("record %d: %w", d.n, err)
	}
	return rec, []byte(s), nil
}

// base returns the run as its last snapshot has it, if that is not after a number of records, or else before
// its first record.
func (l *log) base(p *workflow.Program, to int) (*driver, error) {
	args, chain := jsontext.Value(l.doc.Get("args").String()), chainOf(l.doc)
	if text, is := l.read(snapshotDoc(l.id)).AsString(); is {
		d, err := restore(p, args, []byte(text))
		if err != nil {
			return nil, err
		}
		if d.n <= to {
			d.first, d.chain = min(l.oldest(), d.page), chain
			return d, nil
		}
	}
	d := newDriver(p, args)
	d.chain = chain
	if l.oldest() > 0 {
		return nil, fmt.Errorf("record 0 %w", errGone)
	}
	return d, nil
}

// after returns the run after a number of records.
func (l *log) after(p *workflow.Program, to int) (*driver, error) {
	d, err := l.base(p, to)
	if err != nil {
		return nil, err
	}
	for d.n < to {
		rec, text, err := l.next(d)
		if err != nil {
			return nil, err
		}
		if _, err := d.apply(&rec, nil); err != nil {
			return nil, fmt.Errorf("record %d: %w", d.n, err)
		}
		d.wrote(text)
	}
	return d, nil
}

// replay makes a run from its last snapshot and the records after it.
func replay(p *workflow.Program, id string, doc model.Value, at head, read func(doc string) model.Value) (*driver, error) {
	l := log{id: id, doc: doc, read: read}
	d, err := l.after(p, at.n)
	if err != nil {
		return nil, err
	}
	if d.hash != at.hash {
		return nil, errors.New("its records are not those that its position stands for")
	}
	return d, nil
}
