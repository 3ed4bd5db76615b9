// Command door runs doors that lock themselves: a server, a worker and a coordinator in one
// process, until Ctrl-C.
package main

import "github.com/settlehq/settle"

func main() {
	settle.Main(settle.Config{Programs: settle.Always(house())}) // every space is a house
}
