//go:build !race

package test

const slowdown = 1
