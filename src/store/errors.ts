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
}

/** A page was asked for with a cursor that no page gave out; nothing was read. */
export class InvalidCursor extends Error {
  override readonly name = 'InvalidCursor'
}
