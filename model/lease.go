package model

// Check reports why nobody can hold such a lease, if that is so. A lease without a
// document is one of a runtime that is attached to the space: it asks the owner to
// follow what others commit.
func (l *Lease) Check() error {
	if err := CheckName("space", l.Space); err != nil || l.Doc == "" {
		return err
	}
	return CheckName("document", l.Doc)
}
