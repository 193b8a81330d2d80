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

/** The database cannot be worked with as things are; the message tells the operator why. */
export class StoreUnusable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
  }
}

/** The master key does not fit the data; nothing was written. */
export class WrongMasterKey extends StoreUnusable {
  constructor() {
    super(
      'The master key does not fit the data: start with the key that the data was written with. Nothing was changed.',
    )
  }
}

/** A rotation of the master key was begun and has not ended; nothing was changed. */
export class KeyRotationUnfinished extends StoreUnusable {
  constructor() {
    super('A rotation of the master key was begun and has not ended: finish it with "npm run keys:rotate".')
  }
}

/** The rotation that was begun is to another key than the one given; nothing was changed. */
export class OtherRotation extends StoreUnusable {
  constructor() {
    super('A rotation to another new key was begun: finish it with that key. Nothing was changed.')
  }
}

/** Other processes work on the database; nothing was changed. */
export class StillInUse extends StoreUnusable {
  constructor() {
    super('Other nodes work on this database: stop them all first. Nothing was changed.')
  }
}

/** There is no database yet. */
export class NoDataYet extends StoreUnusable {
  constructor() {
    super('There is no data yet, and so nothing that a key was used for.')
  }
}

/** Another process works on the same data folder; nothing was touched. */
export class DataDirInUse extends StoreUnusable {
  constructor(dataDir: string) {
    super(`Another process works on ${dataDir}: stop it, or give this one a DATA_DIR of its own.`)
  }
}

/** DATABASE_URL leads through a pooler that gives every transaction another session; nothing was touched. */
export class NeedsSessions extends StoreUnusable {
  constructor() {
    super(
      'DATABASE_URL leads through a pooler that gives every transaction another session. Pombal needs sessions: give it ' +
        "the database's own address, or a pool in session mode. A node opens 11 connections, and pools them itself.",
    )
  }
}

/** The database was written by a newer version of the service; nothing was touched. */
export class NewerSchema extends StoreUnusable {
  constructor(unknownMigrations: readonly string[]) {
    super(
      `The database was written by a newer version (it has ${unknownMigrations.join(', ')}): start that version or a later one.`,
    )
  }
}

/** The database holds somebody else's tables; nothing was touched. */
export class ForeignDatabase extends StoreUnusable {
  constructor() {
    super('The database holds tables that are not of Pombal: give it one of its own. Nothing was changed.')
  }
}

/** A page was asked for with a cursor that no page gave out; nothing was read. */
export class InvalidCursor extends Error {
  override readonly name = 'InvalidCursor'
}
