// Package bustest has what the tests of package bus and of the packages around it share.
package bustest

import (
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Alterations break one setting each, named as the error must name it.
var Alterations = map[string]func(*jetstream.StreamConfig){
	"storage":             func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
	"persist mode":        func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
	"acknowledgements":    func(c *jetstream.StreamConfig) { c.NoAck = true },
	"subjects":            func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "other.>") },
	"subjects of clients": func(c *jetstream.StreamConfig) { c.Subjects = c.Subjects[:1] },
	"subject transform": func(c *jetstream.StreamConfig) {
		c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: ">", Destination: "x.>"}
	},
	"direct get":             func(c *jetstream.StreamConfig) { c.AllowDirect = false },
	"mirror":                 func(c *jetstream.StreamConfig) { c.Mirror = &jetstream.StreamSource{Name: "OTHER"} },
	"sources":                func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "OTHER"}} },
	"sealed":                 func(c *jetstream.StreamConfig) { c.Sealed = true },
	"counters":               func(c *jetstream.StreamConfig) { c.AllowMsgCounter = true },
	"largest message":        func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 },
	"schema":                 func(c *jetstream.StreamConfig) { c.Metadata["settle.io/schema"] = "99" },
	"component":              func(c *jetstream.StreamConfig) { c.Metadata["settle.io/component"] = "another" },
	"partition count":        func(c *jetstream.StreamConfig) { c.Metadata["settle.io/partitions"] = "3" },
	"horizon":                func(c *jetstream.StreamConfig) { c.Metadata["settle.io/horizon"] = "99h0m0s" },
	"retention":              func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy },
	"discard policy":         func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
	"maximum age":            func(c *jetstream.StreamConfig) { c.MaxAge = 30 * time.Minute },
	"message TTL":            func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true },
	"subject delete markers": func(c *jetstream.StreamConfig) { c.SubjectDeleteMarkerTTL = time.Hour },
	"message schedules":      func(c *jetstream.StreamConfig) { c.AllowMsgSchedules = true },
	"deletes denied":         func(c *jetstream.StreamConfig) { c.DenyDelete = false },
	"messages per subject":   func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 7 },
	"discard per subject":    func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject = !c.DiscardNewPerSubject },
	"roll-up":                func(c *jetstream.StreamConfig) { c.AllowRollup = !c.AllowRollup },
	"republish":              func(c *jetstream.StreamConfig) { c.RePublish = &jetstream.RePublish{Source: ">", Destination: "x.>"} },
	"maximum messages":       func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 },
	"maximum bytes":          func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 },
	"maximum consumers":      func(c *jetstream.StreamConfig) { c.MaxConsumers = 10 },
	"consumer limits": func(c *jetstream.StreamConfig) {
		c.ConsumerLimits = jetstream.StreamConsumerLimits{InactiveThreshold: time.Second, MaxAckPending: 5}
	},
	"duplicate window": func(c *jetstream.StreamConfig) { c.Duplicates = 2 * time.Minute },
	"purges denied":    func(c *jetstream.StreamConfig) { c.DenyPurge = true },
}

// PlainSetting returns a setting's name without the text in brackets.
func PlainSetting(setting string) string {
	plain, _, _ := strings.Cut(setting, " (")
	return plain
}
