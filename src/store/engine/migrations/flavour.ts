import type { DatabaseKind } from '../database-kind.ts'

/** The SQL of the table definitions that differs between the databases. */
export interface Flavour {
  kind: DatabaseKind
  integer: string
  /** Text that is compared byte by byte, for IDs and keys. */
  id: string
  blob: string
  /** A column that numbers the rows in the order of insertion and never reuses a number. */
  seq: string
  /** The key of a table with a `seq`. */
  key: string
  /** Ends the definition of a table with a `seq`. */
  rows: string
  /** Ends the definition of a table without a `seq`. SQLite stores its rows in the order of the primary key. */
  clustered: string
  /** Ends the definition of a table with a `seq` whose rows are inserted and deleted constantly. */
  busy: string
}

export const FLAVOURS: Record<DatabaseKind, Flavour> = {
  sqlite: {
    kind: 'sqlite',
    integer: 'integer',
    id: 'text',
    blob: 'blob',
    seq: 'integer primary key autoincrement',
    key: 'unique',
    rows: 'strict',
    clustered: 'strict, without rowid',
    busy: 'strict',
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
    busy: 'with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)',
  },
}
