package auction

import (
	"embed"

	"github.com/settlehq/settle/program/star"
)

//go:embed *.star
var files embed.FS

// Source returns the same program in Starlark, with its tests.
func Source() (star.Source, error) {
	src := star.Source{Name: "auction", Entry: "auction.star", Files: map[string]string{}}
	for _, name := range []string{"auction.star", "auction_test.star"} {
		text, err := files.ReadFile(name)
		if err != nil {
			return src, err
		}
		src.Files[name] = string(text)
	}
	return src, nil
}
