package main

import _ "github.com/nats-io/nats.go"
