package membus

// Bus is one client of a Server. It implements port.Bus and port.Records. Its parts share a client and
// nothing else.
type Bus struct {
	*client
	laneClient
	logClient
	stateClient
	deadClient
	recordClient
	memberClient
	serviceClient
}

// Connect attaches a client. Close or Kill must end it.
func (s *Server) Connect(id string) *Bus {
	c := newClient(s, id)
	go c.run() // ends when the client is closed or killed
	return busOf(c)
}

// Dial attaches a client that is connected through a simulated network. Close or Kill must end it.
func (s *Server) Dial(id string, net Network) *Bus {
	c := newClient(s, id)
	c.net = net
	c.journeys, c.counts = map[*request]*journey{}, map[countKey]counted{}
	go c.runJourneys() // ends when the client is closed or killed
	return busOf(c)
}

func newClient(s *Server, id string) *client {
	c := &client{id: id, server: s, stopped: make(chan struct{}), ended: make(chan struct{})}
	s.mu.Lock()
	s.clients[c] = true
	s.mu.Unlock()
	return c
}

func busOf(c *client) *Bus {
	return &Bus{c, laneClient{c}, logClient{c}, stateClient{c}, deadClient{c}, recordClient{c}, memberClient{c}, serviceClient{c}}
}
