import { SqliteAdapter, SqliteDialect } from 'kysely'

/** Enables transactions in Kysely's migrator, which SQLite supports for table definitions too. */
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
