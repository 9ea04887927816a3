"""Rebuild data/offensive.txt, the list of words for `exclude="offensive"`.

    pip download --no-deps better_profanity==0.7.0 && unzip better_profanity-*.whl
    python tools/build_offensive.py better_profanity/profanity_wordlist.txt

We read the list word by word. `ORDINARY` holds words that are removed from it. They have an
ordinary meaning that people need, or they name a group, a body part, a drug or a crime in a neutral
way, or they are rarely insults. `ADDED` holds forms of words that the list lacks.
"""

from __future__ import annotations

import sys
from pathlib import Path

ORDINARY = frozenset(
    """
    anal anus areole arian aryan asanchez autoerotic bdsm beastial beastiality bestial
    bestiality bondage breasts bust busty cipa clitoris coon cowgirl cowgirls crap crotch
    cunnilingus damn dink dinks doggin dogging dong doofus dopey drunk duche dummy ejaculate
    ejaculated ejaculates ejaculating ejaculation enlargement erect erection erotic erotism
    extacy extasy facial fack fanny fart fat feck fellate fellatio fingering fisted fisty flange
    floozy foad fondle foobar fook foreskin freex fubar gae gai gangbang ganja gay gays gey ghay
    gigolo glans god godamn godamnit goddam goddammit goddamn goddamned gonad gonads hebe hell
    hemp hentai heroin herp herpes herpy hitler hiv hoar hoare homey homoerotic hooch hookah
    hookeds hootch hooter hooters horny hump humped humping hussy hymen inbred incest jap jerk
    jerked junkie junky kill kinky kkk klan knob kraut kum kums labia lech len leper lesbians
    lmao lmfao loin loins lube lust lusting lusty mams masochist massa masturbate masturbation
    maxi menses menstruate menstruation meth molest moolie muff murder mutha muther nad nads
    naked napalm nappy nazi nazism niggle nimrod ninny nipple nipples nob nooky nude nudes
    nympho omg opiate opium oral orally organ orgasm orgasmic orgasms orgies orgy ovary ovum
    ovums paddy pantie panties panty pastie pasty pawn pcp pecker pedophile pedophilia
    pedophiliac pee penetrate penetration penial penile penis perversion peyote phalli phallic
    playboy pms pollock poon poop porn pornography pot potty prig pron prostitute prude pube
    pubic pubis punky puss queer queers quicky racy rape raped raper raping rapist rectal rectum
    rectus reefer reich revue rum rump ruski sadism sadist sandbar scag scantily schizo screw
    screwed screwing scrote scrotum scrud seaman seamen seduce semen sex sexual shag shota sissy
    skag slave sleaze sleazy slope smut smutty snatch sniper snuff sodom souse soused spac sperm
    spik steamy stiffy stoned strip stroke stupid suck sucked sucking tampon tawdry teat teste
    testee testes testical testicle testis threesome throating thrust thug tinkle titi toke
    toots transsexual trashy tush ugly undies unwed urinal urine uterus uzi vag vagina valium
    viagra virgin vixen vodka vomit voyeur vulgar vulva wad wang wedgie weed weenie weiner
    weirdo whiz willies willy womb woody xx xxx yaoi yury
    """.split()  # noqa: SIM905
)

ADDED = """
    assholes bastards bitching bullshitting chinks cocksuckers coon coons cunts dickheads dicks
    faggots fags fuckery gooks kikes motherfuckers niggas niggers pakis pricks retards shithead
    shitheads sluts spics trannies tranny twats wankers wetbacks whores
    """.split()  # noqa: SIM905


def main() -> None:
    source, output = map(Path, (*sys.argv[1:], "data/offensive.txt"))
    given = source.read_text("utf-8").split("\n")
    words = {word.strip().lower() for word in given}
    kept = {word for word in words if word.isascii() and word.isalpha()} - ORDINARY
    kept |= {*ADDED}
    output.write_text("\n".join(sorted(kept)) + "\n", "utf-8")
    print(f"{output}: {len(kept)} words")


if __name__ == "__main__":
    main()
