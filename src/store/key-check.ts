import type { Kysely } from 'kysely'
import { WrongMasterKey } from './errors.ts'
import type { Flavour } from './migrations/flavour.ts'
import { tableExists } from './migrations/table-exists.ts'
import type { Database } from './schema/database.ts'
import type { Sealing } from './sealing.ts'

const PLACE = 'meta:key_check'
const KEY = 'key_check'

/** A known word, sealed when the database was made: the master key fits if it opens. */
export class KeyCheck {
  readonly #sealing: Sealing

  constructor(sealing: Sealing) {
    this.#sealing = sealing
  }

  /** Throws `WrongMasterKey`; passes on a database that holds nothing yet. */
  async verify(db: Kysely<Database>, kind: Flavour['kind']): Promise<void> {
    if (!(await tableExists(db, kind, 'meta'))) return
    const row = await db.selectFrom('meta').select('value').where('key', '=', KEY).executeTakeFirst()
    if (row === undefined) throw new WrongMasterKey()
    try {
      this.#sealing.open('', PLACE, row.value)
    } catch {
      throw new WrongMasterKey()
    }
  }

  async write(db: Kysely<Database>): Promise<void> {
    const value = this.#sealing.seal('', PLACE, Buffer.from('pombal'))
    await db.insertInto('meta').values({ key: KEY, value }).execute()
  }
}
