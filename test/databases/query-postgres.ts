import pg from 'pg'

/** Runs one statement on a new connection. */
export async function queryPostgres<T extends object>(url: string, statement: string): Promise<T[]> {
  const client = new pg.Client(url)
  // A connection that breaks has already failed its query.
  client.on('error', () => undefined)
  try {
    await client.connect()
    return (await client.query<T>(statement)).rows
  } finally {
    await client.end()
  }
}
