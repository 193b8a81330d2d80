import { SqliteAdapter, SqliteDialect } from 'kysely'

/** SQLite's tables are made in transactions like its rows; Kysely's migrator makes use of it only if told. */
export class TransactionalSqliteDialect extends SqliteDialect {
  override createAdapter(): SqliteAdapter {
    return new TransactionalSqliteAdapter()
  }
}

class TransactionalSqliteAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true
  }
}
