package main // want "no package comment"

import _ "github.com/nats-io/nats.go" // want "only bus/ speaks NATS"

func main() {}
