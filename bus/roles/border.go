package roles

// A Border is what the account of the streams exports to the account of the users outside, which imports all of it. What a user
// outside publishes to another subject stays in its own account, which has no streams, and so do the answers to its
// requests: the servers pass them on to the subject that the request names, but in the account of the user.
type Border struct {
	Exports []Export
}

// An Export is one subject of a border.
type Export struct {
	Subject string
	// As is the subject under which it is imported.
	As string
	// Messages reports that what is published there is passed to the users outside. Otherwise it takes requests of theirs.
	Messages bool
	// Streamed reports that the answer to a request may be several messages.
	Streamed bool
}

// BorderOf returns the border of a deployment with so many partitions.
func BorderOf(prefix string, partitions int) Border {
	n := newSubjects(prefix, partitions)
	var b Border
	service := func(streamed bool, subject, as string) {
		b.Exports = append(b.Exports, Export{Subject: subject, As: as, Streamed: streamed})
	}
	for _, subject := range []string{n.Sends(""), n.Sends("*"), n.Prefix + ".demand.*", n.Prefix + ".own.>", n.Prefix + ".ping.*"} {
		service(false, subject, subject)
	}
	service(true, n.Prefix+".api.>", n.Prefix+".api.>")
	for _, s := range n.streams() {
		for _, read := range []string{"STREAM.INFO." + s, "STREAM.MSG.GET." + s} {
			service(false, theAPI+read, n.ImportedAPI()+read)
		}
		for _, read := range []string{"DIRECT.GET." + s, "DIRECT.GET." + s + ".>"} {
			service(true, theAPI+read, n.ImportedAPI()+read)
		}
	}
	for _, subject := range n.hears() {
		b.Exports = append(b.Exports, Export{Subject: subject, As: subject, Messages: true})
	}
	return b
}
