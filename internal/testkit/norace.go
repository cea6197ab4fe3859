//go:build !race

package testkit

const race = false
