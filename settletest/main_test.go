package settletest_test

import (
	"testing"

	"github.com/settlehq/settle/internal/leaks"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }
