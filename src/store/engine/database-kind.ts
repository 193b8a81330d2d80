/** The databases that the store works on. A new one begins here: the compiler then demands an entry in each table of both. */
export type DatabaseKind = 'sqlite' | 'postgres'
