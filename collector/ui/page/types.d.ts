// The types that modules of the page share, which are known everywhere.

/** What a component returns. */
type VNode = any

/** A value of JSON; integers that a number cannot hold are of class Big in lib/line.js. */
type Value = any

/** The part of time that the page shows. */
interface TimeRange {
  since: string // as in the URL: 1h, an RFC 3339 time, or empty
  until: string
  from: number | null // milliseconds; null: from the first line
  to: number // of the run, if there is no until
  params: { since?: string; until?: string } // for the API, the same in all requests of a run
}

/** Where the page is: all of it is in the URL. */
interface Place {
  view: string
  q: string
  since: string
  until: string
  state: Record<string, string> // what belongs to the view alone
}

/** The parameters of each view's Component. */
interface ViewProps {
  q: string // the whole expression
  filter: string // without its pipes
  range: TimeRange
  state: Record<string, string>
  setState: (patch: Record<string, string>, replace?: boolean) => void
  go: (to: Partial<Place>) => void // unnamed parts stay, of state what keptState of lib/url.js has
  onError: (err: unknown) => void // shows an error of the expression under its column
  run: number // counts runs: the same query again has another number
  utc: boolean
  session: Session
}

interface View {
  id: string
  title: string
  key: string // the key that leads here
  query?: 'filter' | 'pipes' // the expression it takes; none: no bar
  range?: boolean // whether it has a range of time
  Component: (props: ViewProps) => VNode
}

interface Session {
  authenticated: boolean
  user?: string
  rights?: string[]
  tokens?: boolean
}

/** A stored line. */
interface Line {
  raw: string
  offset: number // -1 if unknown
  object: Record<string, Value>
  time: string
  ms: number
  level: string
  severity: string // the class of the level: trace … fatal
  msg: string
  flat?: [string, Value][] // made by fieldsOf
}

interface Facet {
  field: string
  values: { value: Value; count: number }[]
  more?: number
}

/** What answers with figures have in common. */
interface Figures {
  matched: number
  progress?: { searched: number; total: number }
  estimates?: Record<string, string>
}

interface Hits extends Figures {
  from: string
  until: string
  step_seconds: number
  values: Value[]
  buckets: { time: string; count: number; counts: number[] }[]
}

interface Table extends Figures {
  columns: string[]
  rows: Value[][]
}
