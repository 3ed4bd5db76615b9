package settle

import (
	"github.com/settlehq/settle/internal/reveal"
	"github.com/settlehq/settle/space"
)

func init() {
	reveal.Program = func(p any) (*space.Program, error) {
		q := p.(*Program)
		return q.p, q.Err()
	}
}
