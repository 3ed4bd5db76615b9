package fridge

import (
	"errors"
	"fmt"
	"time"
)

const (
	// TooWarm is the mean temperature in °C above which something is wrong.
	TooWarm = 8.0
	// CoolAgain is the temperature below which all is well again. Between the two, the verdict stays: a
	// mean that wavers around one limit raises no alarm twice.
	CoolAgain = 6.0
	// Patience is the time for which something must be wrong before there is an alarm.
	Patience = 30 * time.Second
	// Keep is the number of hourly records that are kept.
	Keep = 24
)

// The values of the verdict.
const (
	Fine    = "fine"    // the door is closed, and it is cool
	Between = "between" // closed, and neither cool nor too warm
	Warm    = "warm"    // closed, and too warm
	Open    = "open"    // the door is open
)

// Reading is a message of a sensor: a temperature in °C.
type Reading struct {
	Sensor string  `json:"sensor"`
	C      float64 `json:"c"`
}

// Movement is a message of the door.
type Movement struct {
	Open bool `json:"open"`
}

// Alert is the state of the alarm: its reason, and since when.
type Alert struct {
	On    bool      `json:"on"`
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// Record is an hour of the fridge, or a day of it.
type Record struct {
	Coldest float64 `json:"coldest"`
	Warmest float64 `json:"warmest"`
}

// Tile is a sensor on the screen.
type Tile struct {
	C    float64 `json:"c"`
	Warm bool    `json:"warm"`
}

var errNoSensor = errors.New("it names no sensor")

// Check refuses values that no sensor in a fridge can measure.
func (r Reading) Check() error {
	if r.Sensor == "" {
		return errNoSensor
	}
	if r.C < -60 || r.C > 60 {
		return fmt.Errorf("sensor %s: %v °C; a reading lies between -60 and 60", r.Sensor, r.C)
	}
	return nil
}
