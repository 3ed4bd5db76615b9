// Command watch is a plain NATS client.
package main

import _ "github.com/nats-io/nats.go"

func main() {}
