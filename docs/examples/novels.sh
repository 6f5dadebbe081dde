#!/bin/bash
# Write novels/: the first 300,000 bytes of 36 novels in three periods, as docs/study.md uses them.
# The years are those of the first known edition, some of them approximate.
set -eu
[ -d chinese-novel ] || git clone --depth 1 https://github.com/luoxuhai/chinese-novel
[ -d shu ] || git clone --depth 1 https://github.com/shjwudp/shu
mkdir -p novels
# The cut may fall within a character, which iconv then leaves out.
first() { head -c 300000 | iconv -c -f utf-8 -t utf-8 2> /dev/null || true; }
# Files named 0.html are left out, because some are prefaces of today.
while read -r year title; do
  ls -v chinese-novel/resources/*/$title/[1-9]*.html | xargs cat 2> /dev/null | first > novels/${year}_$title.html
done << 'END'
1600_1589 水浒传
1600_1592 西游记
1600_1597 三宝太监西洋记
1600_1620 喻世明言
1600_1621 禅真逸史
1600_1624 警世通言
1600_1625 封神演义
1600_1627 醒世恒言
1600_1628 初刻拍案惊奇
1600_1632 型世言
1600_1635 石点头
1600_1640 西湖二集
1800_1750 儒林外史
1800_1771 绿野仙踪
1800_1775 雪月梅
1800_1791 红楼梦
1800_1792 娱目醒心编
1800_1804 蜃楼志
1800_1814 常言道
1800_1818 镜花缘
1800_1848 风月梦
1800_1853 荡寇志
1800_1858 花月痕
1800_1878 儿女英雄传
END
while read -r year title; do
  first < shu/books/近代/$title.txt > novels/${year}_$title.txt
done << 'END'
1930_1921 沉沦
1930_1921 海滨故人
1930_1923 呐喊
1930_1926 少年漂泊者
1930_1928 前线
1930_1929 旧时代之死
1930_1931 落霞孤鹜
1930_1933 山雨
1930_1936 死水微澜
1930_1937 骆驼祥子
1930_1939 玉官
1930_1946 李家庄的变迁
END
