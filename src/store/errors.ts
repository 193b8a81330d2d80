/**
 * The lease was released, or has another owner or a later epoch. Nothing was written; the caller must stop acting for
 * the instance.
 */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
  readonly instanceId: string

  constructor(instanceId: string) {
    super(`The lease on ${instanceId} is no longer held.`)
    this.instanceId = instanceId
  }
}

/** The store is unreachable, overloaded, full or closing. It is unknown whether the write happened. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}

/** The database cannot be used in its current state. The message explains to the operator why. */
export class StoreUnusable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
  }
}

/** The data was encrypted under another master key. Nothing was written. */
export class WrongMasterKey extends StoreUnusable {
  constructor() {
    super(
      'The master key does not match the data. Start with the key that the data was encrypted with. Nothing was changed.',
    )
  }
}

/** A rotation of the master key is not finished. Nothing was changed. */
export class KeyRotationUnfinished extends StoreUnusable {
  constructor() {
    super('A rotation of the master key is not finished. Finish it with "pombal rotate-keys".')
  }
}

/** An unfinished rotation is to a different new key. Nothing was changed. */
export class OtherRotation extends StoreUnusable {
  constructor() {
    super('A rotation to a different new key is not finished. Finish it with that key. Nothing was changed.')
  }
}

/** The data of this folder was moved to PostgreSQL, or a move has begun. Nothing was changed. */
export class DataMoved extends StoreUnusable {
  constructor(file: string, state: 'moving' | 'moved') {
    super(
      state === 'moved'
        ? `The data was moved to PostgreSQL: set DATABASE_URL. To use the SQLite database again, without any later data, delete ${file}.`
        : `A move of the data to PostgreSQL was begun but has not finished: run "pombal move-to-postgres" to finish it. To stay with SQLite instead, delete ${file}.`,
    )
  }
}

/** The data folder has a SQLite database, and DATABASE_URL names an empty one. Nothing was changed. */
export class UnmovedData extends StoreUnusable {
  constructor(file: string) {
    super(
      `DATABASE_URL names a database without instances, and ${file} has data that was not moved there: run "pombal move-to-postgres". ` +
        'To begin without that data, set DATA_DIR to another folder. Nothing was changed.',
    )
  }
}

/** A move from SQLite into this database is not finished. Nothing was changed. */
export class MoveUnfinished extends StoreUnusable {
  constructor() {
    super('The move from SQLite into this database is not finished. Finish it with "pombal move-to-postgres".')
  }
}

/** Other processes use the database. Nothing was changed. */
export class StillInUse extends StoreUnusable {
  constructor() {
    super('Other nodes use this database. Stop all of them first. Nothing was changed.')
  }
}

/** The database does not exist yet. */
export class NoDataYet extends StoreUnusable {
  constructor() {
    super('There is no data yet, so there is no key to rotate.')
  }
}

/** Another process uses the same data folder. Nothing was changed. */
export class DataDirInUse extends StoreUnusable {
  constructor(dataDir: string) {
    super(`Another process uses ${dataDir}. Stop it, or set DATA_DIR to another folder for this one.`)
  }
}

/** DATABASE_URL points to a connection pooler in transaction mode. Nothing was changed. */
export class NeedsSessions extends StoreUnusable {
  constructor() {
    super(
      'DATABASE_URL points to a pooler in transaction mode. Pombal needs sessions: use the address of the database ' +
        'itself, or a pool in session mode. A node opens 14 connections and pools them itself.',
    )
  }
}

/** A newer version of the service has written to the database. Nothing was changed. */
export class NewerSchema extends StoreUnusable {
  constructor(unknownMigrations: readonly string[]) {
    super(
      `The database was written by a newer version (it has ${unknownMigrations.join(', ')}). Start that version or a later one.`,
    )
  }
}

/** The database contains tables of another application. Nothing was changed. */
export class ForeignDatabase extends StoreUnusable {
  constructor() {
    super(
      'The database contains tables of another application. Give Pombal a database of its own. Nothing was changed.',
    )
  }
}

/** The cursor was not issued by this list. Nothing was read. */
export class InvalidCursor extends Error {
  override readonly name = 'InvalidCursor'
}
