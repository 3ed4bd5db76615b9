package roles

import (
	"fmt"
	"io"
	"strings"
)

// WritePermissions writes the roles and the border as variables of a nats-server configuration, for an
// include: a user's permissions are then $SETTLE_WORKER. The account of the streams has the name of the prefix in
// capitals, and that of the users outside the same with _CLIENTS.
//
// The permissions of a principal are $SETTLE_PRINCIPAL_alice.
func WritePermissions(w io.Writer, prefix string, partitions int, principals ...string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Permissions of a deployment with prefix %s and %d partitions. Made by\n", prefix, partitions)
	fmt.Fprintf(&b, "# `settle permissions --prefix %s --partitions %d`; do not edit.\n", prefix, partitions)
	upper := strings.ToUpper(prefix)
	for _, r := range Of(prefix, partitions) {
		writeRole(&b, upper+"_"+strings.ToUpper(r.Name), &r)
	}
	for _, p := range principals {
		r := Principal(prefix, p)
		writeRole(&b, upper+"_PRINCIPAL_"+p, &r)
	}
	writeBorder(&b, upper, BorderOf(prefix, partitions))
	_, err := io.WriteString(w, b.String())
	return err
}

func writeRole(b *strings.Builder, variable string, r *Role) {
	fmt.Fprintf(b, "\n# %s: %s.\n%s: {\n", r.Name, r.About, variable)
	writeSubjects(b, "publish", r.Publish)
	writeSubjects(b, "subscribe", r.Subscribe)
	b.WriteString("}\n")
}

func writeSubjects(b *strings.Builder, what string, subjects []string) {
	fmt.Fprintf(b, "  %s: { allow: [\n", what)
	for _, s := range subjects {
		fmt.Fprintf(b, "    %q\n", s)
	}
	b.WriteString("  ] }\n")
}

// writeBorder writes what the two accounts export and import.
func writeBorder(b *strings.Builder, upper string, border Border) {
	outside := upper + "_CLIENTS"
	fmt.Fprintf(b, "\n# What the account %s exports to the account %s, of the readers and clients.\n%s_EXPORTS: [\n", upper, outside, upper)
	for i := range border.Exports {
		e := &border.Exports[i]
		more := ""
		if e.Streamed {
			more = ", response_type: Stream"
		}
		fmt.Fprintf(b, "  { %s: %q, accounts: [%s]%s }\n", e.kind(), e.Subject, outside, more)
	}
	fmt.Fprintf(b, "]\n\n# What %s imports from it.\n%s_IMPORTS: [\n", outside, upper)
	for i := range border.Exports {
		e := &border.Exports[i]
		to := ""
		if e.As != e.Subject {
			to = fmt.Sprintf(", to: %q", e.As)
		}
		fmt.Fprintf(b, "  { %s: { account: %s, subject: %q }%s }\n", e.kind(), upper, e.Subject, to)
	}
	b.WriteString("]\n")
}

// kind is what a nats-server configuration calls it.
func (e *Export) kind() string {
	if e.Messages {
		return "stream"
	}
	return "service"
}
