/** How the two databases spell what the tables need. */
export interface Flavour {
  kind: 'sqlite' | 'postgres'
  integer: string
  /** Text that is compared byte by byte: identifiers and keys. */
  id: string
  blob: string
  /** A column that numbers the rows in the order of insertion and never gives a number twice. */
  seq: string
  /** The key of a table that has a `seq`. */
  key: string
  /** Closes a table that has a `seq`. */
  rows: string
  /** Closes a table without: its rows are kept in the order of their primary key. */
  clustered: string
}

export const FLAVOURS: Record<Flavour['kind'], Flavour> = {
  sqlite: {
    kind: 'sqlite',
    integer: 'integer',
    id: 'text',
    blob: 'blob',
    seq: 'integer primary key autoincrement',
    key: 'unique',
    rows: 'strict',
    clustered: 'strict, without rowid',
  },
  postgres: {
    kind: 'postgres',
    integer: 'bigint',
    id: 'text collate "C"',
    blob: 'bytea',
    seq: 'bigint not null generated always as identity',
    key: 'primary key',
    rows: '',
    clustered: '',
  },
}

/** Storage settings of a PostgreSQL table whose rows come and go all the time; nothing on SQLite. */
export function busy(flavour: Flavour): string {
  return flavour.kind === 'postgres'
    ? 'with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)'
    : flavour.rows
}
