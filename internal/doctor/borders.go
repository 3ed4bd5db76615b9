package doctor

import "fmt"

// borders warns of what lets users that are not trusted reach the streams.
func (j *judge) borders() {
	b := j.Borders
	switch {
	case b == nil:
		return
	case b.Unknown != nil:
		j.bad(Warning, CheckBorders, "not known: "+b.Unknown.Error(), "What the account of the streams exports, and which clients are in it, could not be read.",
			"Name a user of the system account: --system-user or --system-creds.")
		return
	}
	if len(b.Excess) > 0 {
		j.bad(Warning, CheckBorders, fmt.Sprintf("account %s exports what no client needs: %s", j.User.Account, clip(b.Excess)),
			"A user of an account that imports it reaches what it should not: a consumer, for example, delivers to any subject that its creator names, such as that of a log.",
			"Remove the export: `settle permissions` prints those that are needed.")
	}
	if len(b.Public) > 0 {
		j.bad(Warning, CheckBorders, fmt.Sprintf("every account may import from account %s: %s", j.User.Account, clip(b.Public)),
			"Each account of these servers can read this deployment, and send to it.", "Name the accounts that may import it, as `settle permissions` does.")
	}
	if len(b.Guests) > 0 {
		j.bad(Warning, CheckBorders, fmt.Sprintf("clients in account %s, which has the streams: %s", j.User.Account, clip(b.Guests)),
			"A user of that account that may read can write every stream: the server sends what it reads to any subject that it names.",
			"Make them users of an account that imports: deploy/nats/users.conf has one. Clients that are trusted with everything may stay.")
	}
	if len(b.Excess)+len(b.Public)+len(b.Guests) == 0 {
		j.ok(CheckBorders, "no client in account %s, and it exports no more than clients need", j.User.Account)
	}
}

// passedOver warns of messages that processes have passed over, because they cannot be read.
func (j *judge) passedOver() {
	if j.fleet == nil {
		return
	}
	all := j.fleet.PassedOver()
	for _, p := range all {
		j.bad(Warning, CheckUnreadable, fmt.Sprintf("stream %s: %d, the last at sequence %d (%s): %s", p.Stream, p.Count, p.Seq, p.Subject, p.Reason),
			"A program has stored what is no event, no announcement or no rule there. Nothing waits for it, and nothing else is affected.",
			"Find the program, and correct it. The finding ends when the processes that report it are restarted and the message is gone.")
	}
	if len(all) == 0 {
		j.ok(CheckUnreadable, "no message that cannot be read")
	}
}
