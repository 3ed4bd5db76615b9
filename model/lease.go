package model

// Check returns an error if the lease is malformed. A lease without a document belongs to a runtime that is
// attached to the space: it asks the owner to follow the commits of other runtimes.
func (l *Lease) Check() error {
	if err := CheckName("space", l.Space); err != nil {
		return err
	}
	if err := l.check(); err != nil || l.Doc == "" {
		return err
	}
	return CheckName("document", l.Doc)
}
