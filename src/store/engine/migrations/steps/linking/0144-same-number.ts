/** An index to find the instances that are linked to one number. */
export function sameNumber(): string[] {
  return ['create index connections_phone on connections (phone) where phone is not null']
}
