package codec

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// The types of the tests. Each represents a case that a converter must handle.

type (
	airport string
	count   int16
	weight  float32

	// leg is a typical small struct.
	leg struct {
		From  airport   `json:"from"`
		To    airport   `json:"to,omitempty"`
		Delay int       `json:"delay"`
		At    time.Time `json:"at,omitzero"`
	}

	// journey has fields of every kind.
	journey struct {
		ID    string                 `json:"id"`
		Legs  []leg                  `json:"legs"`
		First *leg                   `json:"first,omitzero"`
		By    map[airport]leg        `json:"by,omitempty"`
		Raw   model.Value            `json:"raw,omitzero"`
		Kids  []journey              `json:"kids,omitempty"`
		More  any                    `json:"more"`
		Big   uint64                 `json:"big"`
		Small int8                   `json:"small"`
		Ratio float32                `json:"ratio"`
		Price money                  `json:"price,omitzero"`
		Deep  map[string]map[int]int `json:"deep,omitzero"`
		Skip  chan int               `json:"-"`
		inner int                    //nolint:unused // that it is passed over is the point
	}

	// money writes its JSON itself, with a method of the pointer.
	money struct{ cents int64 }

	// level is text in JSON.
	level int

	// secret is written and never read.
	secret struct{ X int }

	// cold has a zero that is not 0.
	cold int

	base struct {
		ID   string `json:"id"`
		Name string
	}
	hidden  struct{ Seen int }
	inlined struct {
		base
		hidden
		Extra int `json:"extra"`
	}
	shadowed struct {
		base
		ID int `json:"id"`
	}
	ambiguous struct {
		base
		Other
	}
	Other    struct{ Name, More string }
	pointing struct {
		*Other
		X int
	}
	named struct {
		base `json:"base"`
	}
	stringly struct {
		N int64 `json:"n,string"`
		M int
	}
	caseless struct {
		N int `json:"n,case:ignore"`
	}
	zeros struct {
		C cold       `json:",omitzero"`
		T time.Time  `json:",omitzero"`
		P *time.Time `json:",omitzero"`
		I fmt.Stringer
		E any `json:",omitempty"`
		S struct {
			X int    `json:",omitempty"`
			Y string `json:",omitempty"`
		} `json:",omitempty"`
	}
	tree struct {
		Kids []tree
		By   map[string]*tree
		Up   *tree `json:",omitzero"`
	}
	loop  []loop
	chain *chain //nolint:unused // see loop
)

func (m *money) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `"%d EUR"`, m.cents), nil
}

func (m *money) UnmarshalJSON(text []byte) error {
	if _, err := fmt.Sscanf(string(text), `"%d EUR"`, &m.cents); err != nil {
		return errors.New("no money")
	}
	return nil
}

func (l level) MarshalText() ([]byte, error) { return []byte(strings.Repeat("i", int(l)&7)), nil }

func (l *level) UnmarshalText(text []byte) error {
	*l = level(len(text))
	return nil
}

func (secret) MarshalJSON() ([]byte, error) { return []byte(`"***"`), nil }

func (c cold) IsZero() bool { return c == -273 }

// leaves are the types from which random types are composed.
var leaves = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[string](), reflect.TypeFor[airport](),
	reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[count](), reflect.TypeFor[int32](), reflect.TypeFor[int64](),
	reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](), reflect.TypeFor[uintptr](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[weight](),
	valueType, timeType, anyType, anyType, reflect.TypeFor[[]byte](), reflect.TypeFor[[3]byte](), reflect.TypeFor[struct{}](),
	reflect.TypeFor[leg](), reflect.TypeFor[journey](), reflect.TypeFor[money](), reflect.TypeFor[level](), reflect.TypeFor[secret](), reflect.TypeFor[cold](),
	reflect.TypeFor[inlined](), reflect.TypeFor[shadowed](), reflect.TypeFor[ambiguous](), reflect.TypeFor[pointing](),
	reflect.TypeFor[stringly](), reflect.TypeFor[caseless](), reflect.TypeFor[zeros](), reflect.TypeFor[tree](), reflect.TypeFor[loop](),
	reflect.TypeFor[netip.Addr](), reflect.TypeFor[big.Int](), reflect.TypeFor[[]model.Value](), reflect.TypeFor[map[string]model.Value](), reflect.TypeFor[map[string]any](),
}

// keys are the types of keys of maps.
var keys = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[string](), reflect.TypeFor[airport](), reflect.TypeFor[int](), reflect.TypeFor[uint8](), reflect.TypeFor[level](), reflect.TypeFor[float64](),
}
