import classes from './linking.module.css'

/** A code of eight characters, to type on the phone or to compare with it. */
export function Code({ label, code }: { label: string; code: string }) {
  return (
    <div className={classes.code}>
      <span>{label}</span>
      <strong aria-hidden>
        {code.slice(0, 4)}-{code.slice(4)}
      </strong>
      <span className="visually-hidden">{[...code].join(' ')}</span>
    </div>
  )
}
