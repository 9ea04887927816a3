from math import ceil, exp

from fastdx import Tem

tem = Tem.recommended()  # 20,000 English words are built in
print(tem.privatize("I would like a cup of coffee, please."))
bound = tem.guarantee.bound("coffee", "tea")
print(f"bound {bound:.2f}: no output is over {ceil(exp(bound)):,} times likelier for coffee")
