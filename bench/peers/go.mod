module github.com/settlehq/settle/bench/peers

go 1.26.0

replace github.com/settlehq/settle => ../..

require (
	github.com/AnatoleLucet/sig v0.1.0
	github.com/coregx/signals v0.1.0
	github.com/wcharczuk/go-incr v1.4.7
)

require github.com/petermattis/goid v0.0.0-20251121121749-a11dd1a45f9a // indirect
