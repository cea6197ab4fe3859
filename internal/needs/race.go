//go:build race

package needs

const race = true
