import type { Kysely } from 'kysely'
import type { Flavour } from '../engine/migrations/flavour.ts'
import { tableExists } from '../engine/migrations/table-exists.ts'
import type { Database } from '../engine/schema/database.ts'
import { KeyRotationUnfinished, WrongMasterKey } from '../errors.ts'
import type { Sealing } from './sealing.ts'

const PLACE = 'meta:key_check'
const KEY = 'key_check'
const ROTATION_KEY = 'key_rotation'

/** Which of two master keys the data is under, and whether a rotation from one to the other was begun. */
export interface KeyState {
  data: 'current' | 'next' | 'neither'
  rotation: 'none' | 'to_current' | 'to_next' | 'to_another'
}

/** A known word, sealed when the database was made: the master key fits if it opens. */
export class KeyCheck {
  readonly #sealing: Sealing

  constructor(sealing: Sealing) {
    this.#sealing = sealing
  }

  /** Throws `WrongMasterKey` or `KeyRotationUnfinished`; passes on a database that holds nothing yet. */
  async verify(db: Kysely<Database>, kind: Flavour['kind']): Promise<void> {
    if (!(await tableExists(db, kind, 'meta'))) return
    if ((await find(db, ROTATION_KEY)) !== null) throw new KeyRotationUnfinished()
    if (!isSealedBy(this.#sealing, await find(db, KEY))) throw new WrongMasterKey()
  }

  async write(db: Kysely<Database>): Promise<void> {
    await db
      .insertInto('meta')
      .values({ key: KEY, value: word(this.#sealing) })
      .execute()
  }
}

/** The records that a rotation of the master key leaves in the database, so that it can be taken up after any crash. */
export class RotationRecord {
  readonly #db: Kysely<Database>

  constructor(db: Kysely<Database>) {
    this.#db = db
  }

  /** @param next null: not known yet */
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

  /** From now on nothing but a rotation to `next` opens the store. */
  async begin(next: Sealing): Promise<void> {
    await this.#db
      .insertInto('meta')
      .values({ key: ROTATION_KEY, value: word(next) })
      .execute()
  }

  /** Every value is under `next`: from now on the data counts as being so. */
  async turn(next: Sealing): Promise<void> {
    await this.#db
      .updateTable('meta')
      .set({ value: word(next) })
      .where('key', '=', KEY)
      .execute()
  }

  async end(): Promise<void> {
    await this.#db.deleteFrom('meta').where('key', '=', ROTATION_KEY).execute()
  }
}

function word(sealing: Sealing): Uint8Array {
  return sealing.seal('', PLACE, Buffer.from('pombal'))
}

function isSealedBy(sealing: Sealing | null, value: Uint8Array | null): boolean {
  return sealing !== null && value !== null && sealing.tryOpen('', PLACE, value) !== null
}

async function find(db: Kysely<Database>, key: string): Promise<Uint8Array | null> {
  const row = await db.selectFrom('meta').select('value').where('key', '=', key).executeTakeFirst()
  return row?.value ?? null
}
