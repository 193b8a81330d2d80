/** The lease has moved on: nothing was written. Whoever holds it must stop acting for the instance. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
  readonly instanceId: string

  constructor(instanceId: string) {
    super(`The lease on ${instanceId} has moved on.`)
    this.instanceId = instanceId
  }
}

/** The store cannot be reached, is full, or is closing. Whether the write happened is unknown. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}

/** The master key does not fit the data; nothing was written. */
export class WrongMasterKey extends Error {
  override readonly name = 'WrongMasterKey'

  constructor() {
    super(
      'The master key does not fit the data: start with the key that the data was written with. Nothing was changed.',
    )
  }
}

/** Another process works on the same data folder; nothing was touched. */
export class DataDirInUse extends Error {
  override readonly name = 'DataDirInUse'

  constructor(dataDir: string) {
    super(`Another process works on ${dataDir}: stop it, or give this one a DATA_DIR of its own.`)
  }
}

/** DATABASE_URL leads through a pooler that gives every transaction another session; nothing was touched. */
export class NeedsSessions extends Error {
  override readonly name = 'NeedsSessions'

  constructor() {
    super(
      'DATABASE_URL leads through a pooler that gives every transaction another session. Pombal needs sessions: give it ' +
        "the database's own address, or a pool in session mode. A node opens 9 connections, and pools them itself.",
    )
  }
}

/** The database was written by a newer version of the service; nothing was touched. */
export class NewerSchema extends Error {
  override readonly name = 'NewerSchema'

  constructor(unknownMigrations: readonly string[]) {
    super(
      `The database was written by a newer version (it has ${unknownMigrations.join(', ')}): start that version or a later one.`,
    )
  }
}

/** A page was asked for with a cursor that no page gave out; nothing was read. */
export class InvalidCursor extends Error {
  override readonly name = 'InvalidCursor'
}
