/** The databases that the store works on. The compiler demands an entry for each in every `Record<DatabaseKind, …>`. */
export type DatabaseKind = 'sqlite' | 'postgres'
