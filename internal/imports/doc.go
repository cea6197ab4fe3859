// Package imports holds the table of packages of Rollway and what each may
// import, with the reason of each edge. It is a test and nothing else.
package imports
