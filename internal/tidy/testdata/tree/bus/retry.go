package bus

import "time"

func backOff() { time.Sleep(1) }
