// Package query asks the collector and other engines the same questions about the
// same lines, and compares their answers before it compares their times.
//
// Corpus writes the lines, by size and seed alone. Queries lists the questions, each as
// the documentation of an engine recommends to ask it there. Each engine is a process
// that stays: `rollway serve`, fed by HTTP and left to pack its segments; ClickHouse as
// chdb, with a MergeTree that has tokenbf_v1 and bloom_filter indexes; DuckDB over a
// Parquet file packed with zstd; VictoriaLogs and Loki, fed by HTTP, whose streams are the
// services, for Loki by level. `zstd -dc | rg` runs anew for each question. Engines that are
// not on the machine, fail or take too long are left out, and the results say so.
//
// Engines take turns, question by question. A time ends when the whole answer is in the
// memory of the client: of servers that includes HTTP. CPU time is that of the engine and of
// the client. In the cold round the pages of the stored files are dropped
// from the page cache before each question; an engine's own caches stay.
package query
