import type { Kysely } from 'kysely'
import type { DatabaseKind } from '../engine/database-kind.ts'
import { listTables } from '../engine/migrations/list-tables.ts'
import type { Database } from '../engine/schema/database.ts'
import { KeyRotationUnfinished, MoveUnfinished, WrongMasterKey } from '../errors.ts'
import type { Sealing } from './sealing.ts'

const PLACE = 'meta:key_check'
const KEY = 'key_check'
/** The record of an unfinished rotation. Until it is removed, values may be under two keys. */
export const ROTATION_KEY = 'key_rotation'
/** The record of an unfinished move into the database. Until the move is finished, the database has no `key_check`. */
export const MOVE_KEY = 'move'

/** Which of two master keys encrypts the data, and which key an unfinished rotation leads to. */
export interface KeyState {
  data: 'current' | 'next' | 'neither'
  rotation: 'none' | 'to_current' | 'to_next' | 'to_another'
}

/** A known value, encrypted under the master key. A key is right if it decrypts the value. */
export class KeyCheck {
  readonly #sealing: Sealing

  constructor(sealing: Sealing) {
    this.#sealing = sealing
  }

  /** @throws WrongMasterKey, KeyRotationUnfinished or MoveUnfinished; never for an empty database */
  async verify(db: Kysely<Database>, kind: DatabaseKind): Promise<void> {
    if (!(await listTables(db, kind)).includes('meta')) return
    if ((await find(db, MOVE_KEY)) !== null) throw new MoveUnfinished()
    if ((await find(db, ROTATION_KEY)) !== null) throw new KeyRotationUnfinished()
    if (!isSealedBy(this.#sealing, await find(db, KEY))) throw new WrongMasterKey()
  }

  async write(db: Kysely<Database>): Promise<void> {
    await db
      .insertInto('meta')
      .values({ key: KEY, value: checkValue(this.#sealing) })
      .execute()
  }
}

/** The progress of a key rotation, stored in the database. The rotation can resume from it after a crash. */
export class RotationRecord {
  readonly #db: Kysely<Database>

  constructor(db: Kysely<Database>) {
    this.#db = db
  }

  /** @param next null if not known yet */
  async read(current: Sealing, next: Sealing | null): Promise<KeyState> {
    const check = await find(this.#db, KEY)
    const begun = await find(this.#db, ROTATION_KEY)
    return {
      data: isSealedBy(current, check) ? 'current' : isSealedBy(next, check) ? 'next' : 'neither',
      rotation:
        begun === null
          ? 'none'
          : isSealedBy(current, begun)
            ? 'to_current'
            : isSealedBy(next, begun)
              ? 'to_next'
              : 'to_another',
    }
  }

  /** From now on the store opens only for a rotation to `next`. */
  async begin(next: Sealing): Promise<void> {
    await this.#db
      .insertInto('meta')
      .values({ key: ROTATION_KEY, value: checkValue(next) })
      .execute()
  }

  /** Records that every value is encrypted under `next`. */
  async switchKey(next: Sealing): Promise<void> {
    await this.#db
      .updateTable('meta')
      .set({ value: checkValue(next) })
      .where('key', '=', KEY)
      .execute()
  }

  async end(): Promise<void> {
    await this.#db.deleteFrom('meta').where('key', '=', ROTATION_KEY).execute()
  }
}

function checkValue(sealing: Sealing): Uint8Array {
  return sealing.seal('', PLACE, Buffer.from('pombal'))
}

function isSealedBy(sealing: Sealing | null, value: Uint8Array | null): boolean {
  return sealing !== null && value !== null && sealing.tryOpen('', PLACE, value) !== null
}

async function find(db: Kysely<Database>, key: string): Promise<Uint8Array | null> {
  const row = await db.selectFrom('meta').select('value').where('key', '=', key).executeTakeFirst()
  return row?.value ?? null
}
