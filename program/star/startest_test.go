package star_test

import (
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/program/startest"
)

func init() { star.SetTestEngine(startest.Engine) }
