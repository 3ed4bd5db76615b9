package fridge

import (
	"fmt"
	"math"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/cron"
)

// The names of a fridge, for its program, its tests and its clients.
var (
	Readings = settle.NewRows[float64]("readings") // °C, by sensor
	IsOpen   = settle.NewCell[bool]("open")        // the door
	Alarm    = settle.NewCell[Alert]("alarm")
	Hours    = settle.NewRows[Record]("hours")

	Mean    = settle.NewDerived[float64]("mean")
	Extent  = settle.NewDerived[Record]("extent") // the coldest and the warmest place, now
	Verdict = settle.NewDerived[string]("verdict")
	Tiles   = settle.NewDerivedRows[Tile]("tiles")
	Day     = settle.NewDerived[Record]("day")
	Trend   = settle.NewDerived[string]("trend")
	Status  = settle.NewDerived[string]("status")

	Temp  = settle.NewStream[Reading]("temp")
	Door  = settle.NewStream[Movement]("door")
	judge = settle.NewTrigger("judge")
	raise = settle.NewTrigger("raise")
	hour  = settle.NewStream[cron.Tick]("hour")
)

// Program returns the program of a fridge.
func Program() *settle.Program {
	p := settle.NewProgram("fridge")
	remember(p)
	derive(p)
	return p
}

// remember registers the handlers: everything that depends on earlier events, and must happen whether
// or not it is watched.
func remember(p *settle.Program) {
	Temp.Handle(p, func(tx *settle.Tx, r Reading) error {
		Readings.Set(tx, r.Sensor, r.C)
		judge.Send(tx, settle.Here)
		return nil
	})
	Door.Handle(p, func(tx *settle.Tx, m Movement) error {
		IsOpen.Set(tx, m.Open)
		judge.Send(tx, settle.Here)
		return nil
	})
	// It reads a derived document, which is brought up to date for it.
	judge.Handle(p, func(tx *settle.Tx) error {
		_, waiting := tx.Timer("alarm")
		switch on := Alarm.Get(tx).On; Verdict.Get(tx) {
		case Warm, Open:
			if !on && !waiting {
				raise.SetTimer(tx, "alarm", tx.Now().Add(Patience))
			}
		case Fine:
			Alarm.Set(tx, Alert{})
			fallthrough
		case Between:
			tx.CancelTimer("alarm")
		}
		return nil
	})
	raise.Handle(p, func(tx *settle.Tx) error {
		Alarm.Set(tx, Alert{On: true, Why: Verdict.Get(tx), Since: tx.Now()})
		return nil
	})
	hour.Handle(p, func(tx *settle.Tx, t cron.Tick) error {
		if now, ok := Extent.Lookup(tx); ok {
			Hours.Set(tx, t.At.UTC().Format("2006-01-02T15"), now)
		}
		if keys := Hours.Keys(tx); len(keys) > Keep {
			Hours.Delete(tx, keys[0])
		}
		return nil
	})
	p.Cron("hourly", "0 * * * *", hour)
}

// derive registers the documents that follow from that state, and are computed on demand.
func derive(p *settle.Program) {
	Mean.Compute(p, func(v *settle.View) (float64, error) {
		sum, n := 0.0, 0
		for _, c := range Readings.All(v) {
			sum, n = sum+c, n+1
		}
		if n == 0 {
			return 0, settle.NoValue
		}
		return sum / float64(n), nil
	})
	Extent.Compute(p, func(v *settle.View) (Record, error) {
		var r reach
		for _, c := range Readings.All(v) {
			r.add(Record{c, c})
		}
		return r.record()
	})
	Verdict.Compute(p, func(v *settle.View) (string, error) {
		switch c := Mean.Get(v); {
		case IsOpen.Get(v):
			return Open, nil
		case c > TooWarm:
			return Warm, nil
		case c < CoolAgain:
			return Fine, nil
		default:
			return Between, nil
		}
	})
	Tiles.Compute(p, settle.Each(Readings, func(v *settle.View, row settle.Row[float64]) (Tile, error) {
		c := row.Get(v)
		return Tile{C: c, Warm: c > TooWarm}, nil
	}))
	Day.Compute(p, func(v *settle.View) (Record, error) {
		var r reach
		for _, h := range Hours.All(v) {
			r.add(h)
		}
		return r.record()
	})
	Trend.Compute(p, func(v *settle.View) (string, error) {
		d, known := Day.Lookup(v)
		switch c := Mean.Get(v); {
		case !known:
			return "", settle.NoValue
		case c > d.Warmest:
			return "warmer than all day", nil
		case c < d.Coldest:
			return "colder than all day", nil
		default:
			return "as ever", nil
		}
	})
	// The siren may receive the same alarm twice, for example after a crash, which is harmless.
	p.Effect("siren", func(v *settle.View) error {
		if a := Alarm.Get(v); a.On {
			v.Log("alarm", "why", a.Why)
		}
		return nil
	})
	Status.Compute(p, func(v *settle.View) (string, error) {
		c, known := Mean.Lookup(v)
		if !known {
			return "", settle.NoValue
		}
		line := fmt.Sprintf("%v °C, %s", math.Round(10*c)/10, Verdict.Get(v))
		if Alarm.Get(v).On {
			line += ", ALARM"
		}
		return line, nil
	})
}

// reach returns the range from the coldest to the warmest added value.
type reach struct {
	Record
	some bool
}

func (r *reach) add(o Record) {
	if !r.some {
		r.Record, r.some = o, true
	}
	r.Coldest, r.Warmest = min(r.Coldest, o.Coldest), max(r.Warmest, o.Warmest)
}

func (r *reach) record() (Record, error) {
	if !r.some {
		return Record{}, settle.NoValue
	}
	return r.Record, nil
}
