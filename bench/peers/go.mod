module github.com/settlehq/settle/bench/peers

go 1.26.0

replace github.com/settlehq/settle => ../..

require (
	github.com/AnatoleLucet/sig v0.1.0
	github.com/coregx/signals v0.1.0
	github.com/settlehq/settle v0.0.0-00010101000000-000000000000
	github.com/wcharczuk/go-incr v1.4.7
)

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/hashicorp/go-immutable-radix v1.3.1 // indirect
	github.com/hashicorp/go-memdb v1.3.5 // indirect
	github.com/hashicorp/golang-lru v0.5.4 // indirect
	github.com/petermattis/goid v0.0.0-20251121121749-a11dd1a45f9a // indirect
)
