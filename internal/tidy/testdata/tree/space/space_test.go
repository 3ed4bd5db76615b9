package space

import (
	_ "context"
	_ "os"
	"testing"
)

func TestFree(t *testing.T) {
	c := make(chan int)
	go close(c)
	<-c
	for range map[int]int{} {
	}
}
