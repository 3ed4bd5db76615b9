package collection_test

import (
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/collection"
	"github.com/settlehq/settle/settletest"
	"github.com/settlehq/settle/upgrade"
)

type euros struct {
	Euros int `json:"euros"`
}

type cents struct {
	Cents int `json:"cents"`
}

func TestVersion_ElementsAreUpgradedOneByOne(t *testing.T) {
	orders := collection.New[cents]("order-").Version(2, upgrade.From(1, func(e euros) (cents, error) { return cents{100 * e.Euros}, nil }))
	former := collection.New[euros]("order-")
	total, add := settle.NewDerived[int]("total"), settle.NewTrigger("add")
	p := settle.NewProgram("orders")
	add.Handle(p, func(tx *settle.Tx) error {
		orders.Update(tx, "a", func(c *cents) { c.Cents++ })
		return nil
	})
	for name, f := range map[string]func(tx *settle.Tx){
		"read":   func(tx *settle.Tx) { former.Get(tx, "a") },
		"write":  func(tx *settle.Tx) { former.Set(tx, "a", euros{1}) },
		"delete": func(tx *settle.Tx) { former.Delete(tx, "a") },
	} {
		settle.NewTrigger(name).Handle(p, func(tx *settle.Tx) error { f(tx); return nil })
	}
	total.Compute(p, func(v *settle.View) (sum int, _ error) {
		for _, o := range orders.All(v) {
			sum += o.Cents
		}
		return sum, nil
	})
	s := settletest.New(t, p).Space("shop")
	s.Set("order-a", euros{2})
	s.Set("order-b", euros{3})
	settletest.Expect(s, total, 500)
	settletest.Send(s, add)
	settletest.Expect(s, total, 501)
	if got := s.Get("order-a").String() + s.Get("order-b").String(); got != `{"$version":2,"cents":201}{"euros":3}` {
		t.Errorf("stored are %s", got)
	}
	for _, name := range []string{"read", "write", "delete"} {
		s := settletest.New(t, p).Space("shop")
		s.Set("order-a", euros{2})
		settletest.Send(s, add)
		s.SendID(name, settle.ID("e1"), nil)
		s.Advance(time.Minute)
		if rc, ended := s.Receipt(name, settle.ID("e1")); ended || s.Get("order-a").Get("cents").String() != "201" {
			t.Errorf("%s by a program that does not know the version ended: %+v; stored is %s", name, rc, s.Get("order-a"))
		}
	}
}
