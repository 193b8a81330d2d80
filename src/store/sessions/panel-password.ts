import type { Transaction } from '../engine/backend.ts'
import type { Statements } from '../engine/statement.ts'

export const PASSWORD_KEY = 'panel.password'
/** The ID of the account that set it. */
export const PASSWORD_SETTER_KEY = 'panel.password_setter'

export async function clearPanelPassword(tx: Transaction, { db }: Statements): Promise<void> {
  await tx.query(db.deleteFrom('meta').where('key', 'in', [PASSWORD_KEY, PASSWORD_SETTER_KEY]))
}

/** If this account set the password, clears it and ends all sessions without an account, which it may have opened. */
export async function clearPanelPasswordOf(tx: Transaction, statements: Statements, accountId: string): Promise<void> {
  const { db } = statements
  const setter = db.selectFrom('meta').select('value').where('key', '=', PASSWORD_SETTER_KEY)
  const [row] = await tx.query(setter)
  if (row === undefined || Buffer.from(row.value).toString() !== accountId) return
  await clearPanelPassword(tx, statements)
  await tx.query(db.deleteFrom('panel_sessions'))
}
