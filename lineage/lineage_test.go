package lineage

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/settlehq/settle/internal/seeded" // see the package
	"github.com/settlehq/settle/model"
)

const home = "home"

func send(to string) model.Send { return model.Send{To: to, Stream: "s"} }

func TestLaunch_NumbersSendsToOtherSpaces(t *testing.T) {
	r := New(home, map[string]model.Sent{"north": {Position: 4}})
	sends := []model.Send{send("north"), send(home), send("south"), send("north")}
	r.Launch(model.TxID{Space: home, Epoch: 7, N: 3}, nil, sends)
	var got []string
	for _, s := range sends {
		got = append(got, fmt.Sprintf("%s=%d", s.ID, s.Position))
	}
	want := []string{"home:7:3:0=5", "home:7:3:1=0", "home:7:3:2=1", "home:7:3:3=6"}
	if !slices.Equal(got, want) {
		t.Errorf("launched %v, want %v", got, want)
	}
}

func TestI10_P14_CancelNamesTheFollowUpsThatMustNotBeHandled(t *testing.T) {
	r := New(home, nil)
	r.Launch(model.TxID{Space: home, Epoch: 7, N: 1}, nil, []model.Send{send(home)})
	r.Confirm(1)
	r.Launch(model.TxID{Space: home, Epoch: 7, N: 2}, nil, []model.Send{send("north"), send(home)})
	r.Launch(model.TxID{Space: home, Epoch: 7, N: 3}, nil, []model.Send{send(home)})
	gone := r.Cancel()
	if len(gone) != 2 || !gone["home:7:2:1"] || !gone["home:7:3:0"] {
		t.Errorf("cancelled %v, want those of transactions 2 and 3", gone)
	}
	if again := r.Cancel(); len(again) > 0 {
		t.Errorf("cancelled %v twice", again)
	}
}

// A launch is confirmed or cancelled once: a second answer, one to an unknown transaction, or one that
// arrives after the other changes nothing.
func TestI10_P14_ALaunchIsSettledOnce(t *testing.T) {
	tx := func(n uint64) model.TxID { return model.TxID{Space: home, Epoch: 7, N: n} }
	r := New(home, nil)
	r.Confirm(99) // without launches
	if gone := r.Cancel(); len(gone) > 0 {
		t.Errorf("cancelled %v, but nothing was launched", gone)
	}

	r.Launch(tx(1), nil, []model.Send{send(home), send("north"), send(home)})
	r.Launch(tx(2), nil, []model.Send{send(home)})
	r.Confirm(1)
	r.Confirm(1)
	r.Confirm(0)
	if gone := r.Cancel(); len(gone) != 1 || !gone["home:7:2:0"] {
		t.Errorf("cancelled %v, want the sends of transaction 2: the first is confirmed", gone)
	}
	r.Confirm(2) // too late
	if gone := r.Cancel(); len(gone) > 0 {
		t.Errorf("cancelled %v twice", gone)
	}

	sends := []model.Send{send("north")}
	r.Launch(tx(3), nil, sends)
	if sends[0].Position != 2 {
		t.Errorf("the next send to north is number %d, want 2: the first is confirmed", sends[0].Position)
	}
}

// party is a runtime that launches and seals, and whose commits the log accepts or refuses.
type party struct {
	registry     *Registry
	epoch, n     uint64
	open, sealed []model.Tx
	read         int // commits of the log processed so far
}

type ledger struct {
	commits []model.Commit
	ids     map[string]bool // every id ever minted, even if it was undone
	sent    map[string]model.Sent
}

func (l *ledger) append(t *rapid.T, p *party, c model.Commit) bool {
	if p.read != len(l.commits) {
		return false
	}
	l.commits = append(l.commits, c)
	p.read++
	for i := range c.Txs {
		for _, s := range c.Txs[i].Sends {
			if s.To == home {
				continue
			}
			if s.Position != l.sent[s.To].Position+1 {
				t.Fatalf("%s is committed as number %d to %s, after number %d", s.ID, s.Position, s.To, l.sent[s.To].Position)
			}
			l.sent[s.To] = model.Sent{Position: s.Position, Term: s.Term}
		}
	}
	return true
}

func (p *party) launch(t *rapid.T, l *ledger) {
	p.n++
	to := rapid.SliceOfN(rapid.SampledFrom([]string{"north", home, "south"}), 0, 3).Draw(t, "to")
	tx := model.Tx{N: p.n}
	for _, space := range to {
		tx.Sends = append(tx.Sends, send(space))
	}
	p.registry.Launch(model.TxID{Space: home, Epoch: p.epoch, N: p.n}, nil, tx.Sends)
	for _, s := range tx.Sends {
		if l.ids[s.ID] {
			t.Fatalf("id %s was minted before", s.ID)
		}
		l.ids[s.ID] = true
	}
	if rapid.IntRange(0, 4).Draw(t, "too large") == 0 {
		p.registry.Revoke(tx.N)
		return
	}
	p.open = append(p.open, tx)
}

// decide makes the log accept or refuse what is sealed.
func (p *party) decide(t *rapid.T, l *ledger) {
	if len(p.sealed) == 0 {
		return
	}
	if l.append(t, p, model.Commit{Txs: p.sealed}) {
		p.registry.Confirm(p.sealed[len(p.sealed)-1].N)
		p.sealed = nil
		return
	}
	p.giveUp(t)
	p.catchUp(l)
}

// giveUp cancels everything undecided, and checks that exactly its follow-ups are cancelled.
func (p *party) giveUp(t *rapid.T) {
	gone := p.registry.Cancel()
	for _, tx := range slices.Concat(p.sealed, p.open) {
		for _, s := range tx.Sends {
			if (s.To == home) != gone[s.ID] {
				t.Fatalf("%s to %s: cancelled as a follow-up: %v", s.ID, s.To, gone[s.ID])
			}
			delete(gone, s.ID)
		}
	}
	if len(gone) > 0 {
		t.Fatalf("%v are cancelled although they are committed, or never existed", gone)
	}
	p.sealed, p.open = nil, nil
}

func (p *party) catchUp(l *ledger) {
	for ; p.read < len(l.commits); p.read++ {
		p.registry.Integrate(&l.commits[p.read])
		p.epoch = 0
	}
}

// Ids are never minted twice, even after refusals and takeovers; committed positions are dense.
func TestI10_IDsAreFreshAndCommittedPositionsAreDense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &ledger{ids: map[string]bool{}, sent: map[string]model.Sent{}}
		parties := []*party{{registry: New(home, nil)}, {registry: New(home, nil)}}
		for range 200 {
			p := rapid.SampledFrom(parties).Draw(t, "party")
			switch rapid.SampledFrom([]string{"launch", "launch", "launch", "seal", "decide", "take over", "reload"}).Draw(t, "step") {
			case "launch":
				if p.epoch != 0 {
					p.launch(t, l)
				}
			case "seal":
				if len(p.sealed) == 0 {
					p.sealed, p.open = p.open, nil
				}
			case "decide":
				p.decide(t, l)
			case "take over":
				if p.epoch == 0 {
					p.catchUp(l)
					l.append(t, p, model.Commit{Takeover: true})
					p.epoch, p.n = uint64(len(l.commits)), 0
				}
			case "reload":
				// The state of a replica that has read the log.
				*p = party{registry: New(home, l.sent), read: len(l.commits)}
			}
		}
	})
}
